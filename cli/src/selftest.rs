//! `ferric selftest`: what can be tested on one card alone, and with a plug in its port the data path too.
use crate::party::{Party, Shape, Trouble};
use ferric_abi::codes::{AdminOpcode, WrOpcode};
use ferric_abi::csr;
use ferric_driver::device::{Device, DmaAccess};
use ferric_driver::pages::{Pages, PAGE};
use ferric_driver::types::{Mtu, QpType};
use ferric_driver::{Access, Config, Context, Error};
use ferric_twin::counters;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Outcome of one test.
#[derive(Debug, serde::Serialize)]
pub struct Outcome {
    /// What was tested.
    pub name: &'static str,
    /// What went wrong.
    pub error: Option<String>,
}

type Check = Result<(), Trouble>;

fn expect(good: bool, what: impl Into<String>) -> Check {
    if good {
        Ok(())
    } else {
        Err(Trouble::Peer(what.into()))
    }
}

fn registers(device: &Arc<dyn Device>) -> Check {
    expect(device.read32(csr::MAGIC) == csr::MAGIC_VALUE, "the magic register is wrong")?;
    let start = device.now();
    let first = device.read32(csr::TICK);
    while device.read32(csr::TICK) == first {
        expect(device.now() - start < Duration::from_secs(5), "the tick counter stands still")?;
        device.relax();
    }
    for pattern in [0x5a5a_5a00u32, 0xa5a5_a580, 0] {
        device.write32(csr::ADMIN_SQ_HI, pattern);
        let got = device.read32(csr::ADMIN_SQ_HI);
        expect(got == pattern, format!("a register reads {got:#x} after {pattern:#x} was written"))?;
    }
    Ok(())
}

fn objects(ctx: &Context) -> Check {
    let pd = ctx.alloc_pd()?;
    let eq = ctx.create_eq(4, 0)?;
    let cq = ctx.create_cq(16, &eq)?;
    let qp = pd.create_qp(&Default::default(), &cq, &cq)?;
    let mr = pd.register(vec![0; 10_000].into_boxed_slice(), Access::ALL)?;
    expect(mr.lkey() != 0 && qp.qpn() >= 2, "an object has a number that is never given out")
}

fn dma(ctx: &Context) -> Check {
    let device = ctx.device().clone();
    let memory = Pages::new(2 * PAGE)?;
    let base = memory.ptr().as_ptr();
    // SAFETY: two pages of our own.
    unsafe { base.write_bytes(0xa5, 2 * PAGE) };
    // SAFETY: unmapped below, before `memory` goes.
    let mapping = unsafe { device.map(base, 2 * PAGE, DmaAccess::ReadWrite, true) }?;
    let count = (counters::NAMES.len() as u32).next_multiple_of(8).min(64);
    let at = mapping.iova() + PAGE as u64 - 256;
    let result = ctx.admin(AdminOpcode::QueryCounters, 0, &[at as u32, (at >> 32) as u32, 0, count]);
    device.unmap(&mapping);
    result?;
    let end = PAGE - 256 + count as usize * 8;
    // SAFETY: inside the memory, which the card cannot reach any more.
    let byte = |i: usize| unsafe { base.add(i).read_volatile() };
    expect((0..PAGE - 256).chain(end..2 * PAGE).all(|i| byte(i) == 0xa5), "the card wrote bytes that it was not asked to")?;
    expect((PAGE - 256..end).any(|i| byte(i) != 0xa5), "the card did not write")
}

fn stray(ctx: &Context) -> Check {
    let device = ctx.device().clone();
    let memory = Pages::new(PAGE)?;
    let base = memory.ptr().as_ptr();
    // SAFETY: a page of our own.
    unsafe { base.write_bytes(0xa5, PAGE) };
    // SAFETY: taken back at once: an address that was good until now.
    let mapping = unsafe { device.map(base, PAGE, DmaAccess::ReadWrite, true) }?;
    device.unmap(&mapping);
    let errors = || ctx.counters(counters::id("dma_wr.write_errors") as u32, 1).map(|v| v.first().copied().unwrap_or_default());
    let before = errors()?;
    // Whether the card says that it was done does not matter: what counts is where it wrote.
    let _ = ctx.admin(AdminOpcode::QueryCounters, 0, &[mapping.iova() as u32, (mapping.iova() >> 32) as u32, 0, 8]);
    // SAFETY: inside the memory, which the card cannot reach any more.
    expect((0..PAGE).all(|i| unsafe { base.add(i).read_volatile() } == 0xa5), "the card wrote into memory that is not mapped any more")?;
    expect(errors()? > before, "the card has not counted the write that was refused")
}

fn loopback(ctx: &Context, opcode: WrOpcode) -> Check {
    let shape = Shape { ip: IpAddr::from([10, 0, 0, 1]), size: 4097, window: 4, mtu: Mtu::M1024, patience: Duration::from_secs(30), transport: QpType::Rc };
    let mut party = Party::on(ctx.clone(), shape)?;
    let address = party.address();
    party.connect(&address)?;
    for n in 0..4 {
        party.exchange(n, opcode, &address)?;
    }
    Ok(())
}

fn interrupt(ctx: &Context) -> Check {
    let shape = Shape { ip: IpAddr::from([10, 0, 0, 1]), size: 64, window: 2, mtu: Mtu::M1024, patience: Duration::from_secs(30), transport: QpType::Rc };
    let mut party = Party::on(ctx.clone(), shape)?;
    let address = party.address();
    party.connect(&address)?;
    party.arm();
    party.post(0, WrOpcode::Write, &address)?;
    expect(party.next_event(Duration::from_secs(30))?.is_some(), "no interrupt has come")
}

/// Runs the tests on `device`; `plugged`: its port sends everything back, so the data path can be tested; `stray`: an IOMMU may be provoked.
pub fn run(device: Arc<dyn Device>, plugged: bool, stray_too: bool) -> Result<Vec<Outcome>, Error> {
    let mut outcomes = Vec::new();
    let mut note = |name, result: Check| outcomes.push(Outcome { name, error: result.err().map(|e| e.to_string()) });
    note("registers", registers(&device));
    let ctx = Context::open(device, Config::default())?;
    note("objects", objects(&ctx));
    note("dma", dma(&ctx));
    if stray_too {
        note("stray", stray(&ctx));
    }
    if plugged {
        note("write", loopback(&ctx, WrOpcode::Write));
        note("send", loopback(&ctx, WrOpcode::Send));
        note("interrupt", interrupt(&ctx));
    }
    Ok(outcomes)
}
