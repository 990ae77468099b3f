//! Which modules of a block are leaves of this folder: what synthesis needs to tell hand-written Verilog from generated.

use rust_hdl::prelude::*;

/// Modules of `block`, emitted as `name`, whose Verilog was written by hand here: everything that is neither a kernel nor a
/// register of RustHDL's.
pub fn leaves<B: Block>(name: &str, block: &B) -> Vec<String> {
    let mut found = Leaves { register: text(&DFF::<Bit>::default()), ..Default::default() };
    block.accept(name, &mut found);
    found.names
}

/// The statement lines of a block with text of its own, without declarations and initial values, which differ by width.
fn text(block: &dyn Block) -> Option<String> {
    match block.hdl() {
        Verilog::Custom(text) => text.find("always").map(|at| text[at..].to_string()),
        _ => None,
    }
}

#[derive(Default)]
struct Leaves {
    /// RustHDL's own `DFF`, the one other block with text of its own.
    register: Option<String>,
    scopes: Vec<String>,
    names: Vec<String>,
}

impl Probe for Leaves {
    fn visit_start_scope(&mut self, name: &str, node: &dyn Block) {
        self.scopes.push(name.into());
        if matches!(node.hdl(), Verilog::Custom(_)) && text(node) != self.register {
            self.names.push(self.scopes.join("$"));
        }
    }
    fn visit_end_scope(&mut self, _: &str, _: &dyn Block) {
        self.scopes.pop();
    }
}
