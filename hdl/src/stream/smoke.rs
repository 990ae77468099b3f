use rust_hdl::prelude::*;
use super::*;
fn dump<B: Block>(name: &str, mut b: B) {
    b.connect_all();
    check_all(&b).unwrap();
    let mut d = ModuleDefines::default();
    b.accept(name, &mut d);
    std::fs::create_dir_all("/tmp/h2/v").unwrap();
    std::fs::write(format!("/tmp/h2/v/{name}.v"), d.defines()).unwrap();
}
macro_rules! d { ($n:literal, $t:ty) => {{ let mut t = <$t>::default(); t.clock.connect(); t.reset.connect(); t.s.link_connect_dest(); t.m.link_connect_dest(); dump($n, t); }} }
#[test]
fn smoke() {
    d!("mslice", MsgSlice<Bits<48>>);
    d!("aslice", AxisSlice<64, 8>);
    d!("mfifo4", MsgFifo<Bits<48>, 4>);
    d!("mfifo9", MsgFifo<Bits<48>, 9>);
    d!("afifo5", AxisFifo<64, 8, 5>);
    d!("afifo9", AxisFifo<512, 64, 9>);
    chaos::scoped(5, || { d!("cfifo9", MsgFifo<Bits<48>, 9>); });
}
