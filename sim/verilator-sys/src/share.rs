//! One module where several have the same text. A generator writes a module for each instance, and in a card seven of eight are the same as another one but for their names. Verilator parses, resolves and checks each
//! of them before it inlines.

use std::collections::HashMap;

/// What a module begins with, at the start of a line, and ends with.
const BEGIN: &str = "module ";
const END: &str = "endmodule";

/// A text with the same hardware in which each module stands once; instances keep their names. Modules have to begin at the start of a line, an instance with its module's name at the start of its own: others are
/// left as they are. `top` stays, whatever is the same as it.
pub fn shared(verilog: &str, top: &str) -> String {
    let (head, modules) = split(verilog);
    let by_name: HashMap<&str, usize> = modules.iter().enumerate().map(|(n, (name, _))| (*name, n)).collect();
    let mut sharing = Sharing { modules: &modules, by_name, chosen: vec![None; modules.len()], by_text: HashMap::new(), text: String::from(head) };
    let first = sharing.by_name.get(top).copied();
    first.into_iter().chain(0..modules.len()).for_each(|n| _ = sharing.choose(n));
    sharing.text
}

/// What stands before the first module, and each module's name and text.
fn split(verilog: &str) -> (&str, Vec<(&str, &str)>) {
    let mut starts: Vec<usize> = verilog.match_indices(BEGIN).map(|(at, _)| at).filter(|at| *at == 0 || verilog.as_bytes()[at - 1] == b'\n').collect();
    starts.push(verilog.len());
    let modules = starts.windows(2).map(|w| &verilog[w[0]..w[1]]).map(|text| (identifier(&text[BEGIN.len()..]), text)).collect();
    (&verilog[..starts[0]], modules)
}

/// The identifier that a text begins with.
fn identifier(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '$').unwrap_or(text.len());
    &text[..end]
}

struct Sharing<'a> {
    modules: &'a [(&'a str, &'a str)],
    by_name: HashMap<&'a str, usize>,
    /// The module that stands for each.
    chosen: Vec<Option<usize>>,
    /// Modules by what they are but for their names.
    by_text: HashMap<String, usize>,
    text: String,
}

impl<'a> Sharing<'a> {
    /// The module that stands for module `n`. A module is chosen when those in it have been. One that is in itself, which Verilog does not allow, stays.
    fn choose(&mut self, n: usize) -> usize {
        if let Some(chosen) = self.chosen[n] {
            return chosen;
        }
        self.chosen[n] = Some(n);
        let (name, text) = self.modules[n];
        let mut body = String::with_capacity(text.len());
        for line in text[BEGIN.len() + name.len()..].split_inclusive('\n') {
            let start = line.trim_start();
            let word = identifier(start);
            match self.by_name.get(word) {
                Some(inner) if start[word.len()..].starts_with(' ') => {
                    let inner = self.choose(*inner);
                    body.extend([&line[..line.len() - start.len()], self.modules[inner].0, &start[word.len()..]]);
                }
                // Behind it stands a comment with the module's name.
                _ if word == END => body.push_str("endmodule\n"),
                _ => body.push_str(line),
            }
        }
        let chosen = match self.by_text.get(&body) {
            Some(chosen) => *chosen,
            None => {
                self.text.extend([BEGIN, name, &body]);
                self.by_text.insert(body, n);
                n
            }
        };
        self.chosen[n] = Some(chosen);
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "// A comment.
module top(a,y);
    input wire a;
    output wire y;
    wire m;
    top$first first(
        .a(a), .y(m));
    top$second second(.a(m), .y(y));
    top$third third(.a(m));
endmodule // top

module top$first(a,y);
    top$first$q q(.a(a), .y(y));
endmodule // top$first

module top$first$q(a,y);
    assign y = a;
endmodule // top$first$q

module top$second(a,y);
    top$second$q q(.a(a), .y(y));
endmodule // top$second

module top$second$q(a,y);
    assign y = a;
endmodule // top$second$q

module top$third(a);
    top$third$q q(.a(a));
endmodule // top$third

module top$third$q(a,y);
    assign y = ~a;
endmodule // top$third$q
";

    #[test]
    fn modules_that_are_the_same_stand_once() {
        let text = shared(TEXT, "top");
        let names: Vec<&str> = split(&text).1.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["top$first$q", "top$first", "top$third$q", "top$third", "top"]);
        assert!(text.starts_with("// A comment.\n"));
        for line in ["    top$first first(\n", "    top$first second(.a(m), .y(y));\n", "    top$third third(.a(m));\n", "    top$first$q q(.a(a), .y(y));\n"] {
            assert!(text.contains(line), "{line}");
        }
        assert_eq!(shared(&text, "top"), text);
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        let (same, text) = ("module a(y);\nendmodule\nmodule b(y);\nendmodule\n", "module b(y);\nendmodule\n");
        assert_eq!(shared(same, "b"), text);
        for text in ["module a(y);\n  a again(y);\nendmodule\n", "", "wire x;\n", "module a(y);\n  assign y = 1;\nendmodule\n", "  module b(y);\nendmodule\n"] {
            assert_eq!(shared(text, "a"), text);
        }
    }
}
