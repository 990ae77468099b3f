//! Hostile input: mutated frames at a live queue pair, mutated work requests, admin commands and doorbells. Afterwards a good queue pair must
//! still work, nothing outside registered memory may have changed, and every reject must have been counted.
use crate::pair::{Error, Pair, Wire};
use crate::traffic::Flow;
use ferric_abi::codes::{AdminOpcode, WrOpcode};
use ferric_abi::csr;
use ferric_abi::host::{Sge, WqeHead};
use ferric_driver::dma::DmaBuffer;
use ferric_driver::qp::sge;
use ferric_driver::types::Mtu;
use ferric_driver::{Access, CompletionQueue, MemoryRegion, QpConfig, QueuePair, RecvRequest};
use ferric_hdl::net::icrc::model::seal;
use ferric_sim::{Rng, WorldConfig};
use rand::{Rng as _, SeedableRng};
use std::collections::BTreeMap;

/// How much of what.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Seed.
    pub seed: u64,
    /// Mutated frames.
    pub frames: u64,
    /// Mutated work requests, admin commands and doorbells, each this many.
    pub requests: u64,
}

/// A mapped page that is not part of any region: the card has no business there.
struct Guard {
    page: DmaBuffer,
    pattern: [u8; 4096],
}

impl Guard {
    fn new(pair: &Pair, host: usize, rng: &mut Rng) -> Result<Self, Error> {
        let page = DmaBuffer::new(pair.hosts[host].ctx.device(), 4096)?;
        let mut pattern = [0; 4096];
        rng.fill(&mut pattern[..]);
        page.write(0, &pattern);
        Ok(Self { page, pattern })
    }
    fn intact(&self) -> bool {
        self.page.read::<4096>(0) == self.pattern
    }
}

/// The queue pairs under attack, at host 0 and host 1.
struct Victim {
    qps: [QueuePair; 2],
    cqs: [CompletionQueue; 2],
    regions: [MemoryRegion; 2],
    wire: Wire,
    lives: u64,
}

impl Victim {
    fn new(pair: &Pair) -> Result<Self, Error> {
        let wire = Wire { mtu: Mtu::M256, psn: [0x100, 0x200], timeout: 6, ..Default::default() };
        let cqs = [pair.hosts[0].cq(256)?, pair.hosts[1].cq(256)?];
        let config = QpConfig { max_send: 16, max_recv: 16, max_send_sge: 2, max_recv_sge: 2, ..Default::default() };
        let qps = pair.connected(&config, &wire, [&cqs[0], &cqs[1]])?;
        let regions = [pair.hosts[0].region(8192, Access::ALL)?, pair.hosts[1].region(8192, Access::ALL)?];
        let mut victim = Self { qps, cqs, regions, wire, lives: 0 };
        victim.post_receives()?;
        Ok(victim)
    }

    fn post_receives(&mut self) -> Result<(), Error> {
        let into = [sge(self.regions[1].addr(), 4096, self.regions[1].lkey())];
        for wr_id in 0..8 {
            self.qps[1].post_recv(&RecvRequest { wr_id, sges: &into })?;
        }
        Ok(())
    }

    /// Resets both ends and connects them again.
    fn revive(&mut self, pair: &Pair) -> Result<(), Error> {
        self.lives += 1;
        let [a, b] = &mut self.qps;
        a.to_reset()?;
        b.to_reset()?;
        for cq in &mut self.cqs {
            while cq.poll().is_some() {}
        }
        pair.connect(&self.wire, a, b)?;
        self.post_receives()
    }

    /// A well-formed request for host 1's queue pair, `ahead` of the PSN it expects at the start of a life.
    fn frame(&self, pair: &Pair, rng: &mut Rng, psn: u32) -> Vec<u8> {
        let (me, peer) = (&pair.hosts[0], &pair.hosts[1]);
        let opcode = [0x00u8, 0x01, 0x02, 0x04, 0x05, 0x06, 0x07, 0x08, 0x0a, 0x0b, 0x11][rng.gen_range(0..11)];
        let payload = match opcode {
            0x00 | 0x01 | 0x06 | 0x07 => 256,
            0x11 => 0,
            _ => rng.gen_range(0..=256),
        };
        let pad = (4 - payload % 4) % 4;
        let mut bth = vec![opcode, 0x40 | (pad as u8) << 4, 0xff, 0xff, 0];
        bth.extend_from_slice(&self.qps[1].qpn().to_be_bytes()[1..]);
        bth.push(0x80);
        bth.extend_from_slice(&psn.to_be_bytes()[1..]);
        if matches!(opcode, 0x06 | 0x0a | 0x0b) {
            bth.extend_from_slice(&self.regions[1].addr().to_be_bytes());
            bth.extend_from_slice(&self.regions[1].rkey().to_be_bytes());
            bth.extend_from_slice(&(payload as u32).to_be_bytes());
        }
        if matches!(opcode, 0x05 | 0x0b) {
            bth.extend_from_slice(&[1, 2, 3, 4]);
        }
        if opcode == 0x11 {
            bth.extend_from_slice(&[rng.gen(), 0, 0, 1]);
        }
        bth.extend((0..payload + pad).map(|i| i as u8));
        bth.extend_from_slice(&[0; 4]);
        let mut f = Vec::new();
        f.extend_from_slice(&peer.mac().0);
        f.extend_from_slice(&me.mac().0);
        f.extend_from_slice(&[8, 0, 0x45, 0]);
        f.extend_from_slice(&(28 + bth.len() as u16).to_be_bytes());
        f.extend_from_slice(&[0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        let sum: u32 = f[14..34].chunks(2).map(|w| u16::from_be_bytes([w[0], w[1]]) as u32).sum();
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        f[24..26].copy_from_slice(&sum.to_be_bytes());
        f.extend_from_slice(&[0xc0, 0, 0x12, 0xb7]);
        f.extend_from_slice(&(8 + bth.len() as u16).to_be_bytes());
        f.extend_from_slice(&[0, 0]);
        f.extend_from_slice(&bth);
        f
    }
}

/// Runs the attack; the result is what was counted.
pub fn run(plan: Plan) -> Result<BTreeMap<String, u64>, Error> {
    let mut rng = Rng::seed_from_u64(plan.seed);
    let pair = Pair::new(&WorldConfig { seed: plan.seed, ..Default::default() })?;
    let fail = |what: String| Error::Stuck(format!("seed {}: {what}; replay with ./scripts/soak hostile --seed {} --frames {} --requests {}", plan.seed, plan.seed, plan.frames, plan.requests));
    let guards = [Guard::new(&pair, 0, &mut rng)?, Guard::new(&pair, 1, &mut rng)?];
    let mut good = Flow::new(&pair, &Wire::default(), 3000, 4, false)?;
    good.run(&pair, WrOpcode::Write, 4, 400_000)?;
    let mut victim = Victim::new(&pair)?;

    let mut psn = 0x100;
    for n in 0..plan.frames {
        let mut frame = victim.frame(&pair, &mut rng, psn);
        let header = 42..frame.len().min(42 + 36);
        match rng.gen_range(0..8) {
            0 => {}
            1 => frame[42] = rng.gen(),
            2 => frame[header.start + rng.gen_range(0..header.len())] ^= 1 << rng.gen_range(0..8),
            3 => frame[43] ^= 0x10 << rng.gen_range(0..2),
            4 => {
                let at = rng.gen_range(14..frame.len());
                frame[at] = rng.gen();
            }
            5 => frame[51..54].copy_from_slice(&rng.gen::<[u8; 3]>()),
            6 => frame.truncate(rng.gen_range(20..=frame.len())),
            _ => {
                if frame.len() > 74 {
                    let at = rng.gen_range(54..70);
                    frame[at] = rng.gen();
                }
            }
        }
        if rng.gen_range(0..100) < 85 {
            // Frames too short to carry one keep what they have.
            let _ = seal(&mut frame);
        }
        pair.world().cards[1].receive(frame);
        psn += rng.gen_bool(0.7) as u32;
        pair.world().run(60);
        if n % 25 == 24 {
            pair.world().run(3000);
            victim.revive(&pair)?;
            psn = 0x100;
        }
    }
    victim.revive(&pair)?;

    for n in 0..plan.requests {
        let mut slot = [0u8; 64];
        let head = WqeHead::default()
            .with_opcode(rng.gen_range(0..5))
            .with_signaled(true)
            .with_num_sge(rng.gen_range(0..4))
            .with_qpn(victim.qps[0].qpn())
            .with_raddr(victim.regions[1].addr())
            .with_rkey(victim.regions[1].rkey())
            .with_length(rng.gen_range(0..600));
        slot[..32].copy_from_slice(&head.0);
        slot[32..48].copy_from_slice(&Sge::default().with_addr(victim.regions[0].addr()).with_length(rng.gen_range(0..600)).with_lkey(victim.regions[0].lkey()).0);
        for _ in 0..rng.gen_range(1..4) {
            slot[rng.gen_range(0..64)] = rng.gen();
        }
        victim.qps[0].post_raw_slot(n, &slot);
        // Commands on numbers that no object of the set-up has, or with nonsense in them.
        let opcode = AdminOpcode::ALL[rng.gen_range(0..AdminOpcode::ALL.len())].0;
        // QueryCounters writes where its issuer says, which is no business of this test.
        if !matches!(opcode, AdminOpcode::SetPort | AdminOpcode::QueryCounters) {
            let id = rng.gen_range(60..2000);
            let params: Vec<u32> = (0..10).map(|_| rng.gen()).collect();
            let made = pair.hosts[0].ctx.admin(opcode, id, &params).is_ok();
            let undo = match opcode {
                AdminOpcode::CreatePd => Some(AdminOpcode::DestroyPd),
                AdminOpcode::CreateEq => Some(AdminOpcode::DestroyEq),
                AdminOpcode::CreateCq => Some(AdminOpcode::DestroyCq),
                AdminOpcode::CreateMr => Some(AdminOpcode::DestroyMr),
                AdminOpcode::CreateQp => Some(AdminOpcode::DestroyQp),
                _ => None,
            };
            if let (true, Some(undo)) = (made, undo) {
                pair.hosts[0].ctx.admin(undo, id, &[])?;
            }
        }
        let offset = [csr::DB_SQ, csr::DB_RQ, csr::DB_CQ, csr::DB_EQ, 0x1020, 0x3ff8][rng.gen_range(0..6)];
        // Not the numbers of the live queues: their owner may of course ring nonsense at itself.
        let bell = (rng.gen::<u64>() & !0xff_ffff) | rng.gen_range(40..0x100_0000u64);
        pair.hosts[0].ctx.device().write64(offset, bell);
        pair.world().run(200);
        if n % 8 == 7 {
            pair.world().run(3000);
            victim.revive(&pair)?;
        }
    }

    pair.world().run(20_000);
    good.run(&pair, WrOpcode::Write, 12, 400_000).map_err(|e| fail(format!("the good queue pair no longer works: {e}")))?;
    if !guards.iter().all(Guard::intact) {
        return Err(fail("memory outside every region changed".into()));
    }
    if pair.iommu_faults() > 0 {
        return Err(fail(format!("the card reached for unmapped memory {} times", pair.iommu_faults())));
    }
    let names = ferric_hdl::card::counters::names();
    let mut counted = BTreeMap::new();
    for host in 0..2 {
        for (name, n) in names.iter().zip(pair.hosts[host].ctx.counters(0, names.len() as u32)?) {
            *counted.entry(name.clone()).or_default() += n;
        }
    }
    counted.insert("lives".into(), victim.lives);
    Ok(counted)
}
