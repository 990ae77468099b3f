//! The block, the model's state, and what is on its way in both.
use super::frames::*;
use super::*;

pub struct Bench<const W: usize, const K: usize> {
    pub tb: Tb,
    /// Frames that are about to leave, the first of which is offered, and the answers that are due.
    pub leavers: VecDeque<Leaver>,
    pub answers: VecDeque<(u64, Answer)>,
    pub told: BTreeMap<&'static str, u64>,
    /// Of these, those that flows are to count, the first of which is offered; and those that nobody has judged.
    pub uses_out: VecDeque<(u16, u64)>,
    pub unasked: u64,
    /// Of those that do not leave: whether they come in again, and whether they are RoCE.
    pub again: BTreeMap<(bool, bool), u64>,
    /// Of a hundred cycles, those in which another one comes.
    pub leaving: u32,
    pub gaps: u32,
    pub beats: VecDeque<(Vec<u8>, bool, Came, usize)>,
    pub cycles: u64,
    pub port: FlowPortCtx,
    /// Which functions have tunnels, and what the block knows of that: what was so in the cycle before.
    pub networks: Networks,
    pub known: Networks,
    /// Which frames go past the block, whether it was allowed to lead them by in the cycle before, and whether it showed a beat then.
    pub past: Past,
    pub was_off: bool,
    pub showed: bool,
    pub by: u64,
    /// Frames whose windows are complete, by the cycle in which they are judged.
    pub judged: VecDeque<(u64, Came)>,
    pub expected: VecDeque<Gone>,
    pub out: Vec<u8>,
    pub stat: BTreeMap<&'static str, u64>,
    pub counts: BTreeMap<&'static str, u64>,
    /// What flows have counted, by the line of their action; and how many frames that was in all.
    pub flows: BTreeMap<u16, FlowCounters>,
    pub uses: u64,
    /// Frames that an action has changed.
    pub edited: u64,
    /// Commands that the exact table's lines have got, by way and line.
    pub lines: BTreeMap<(u8, u32), FlowCommand>,
    pub tables: Tables,
    pub placement: Table<{ KEY_BITS }, 64>,
    pub homes: Table<{ station::KEY_BITS }, 64>,
    pub rules: Rules,
    pub whole: BTreeMap<usize, Rule>,
    pub writes: VecDeque<FlowCommand>,
    pub pool: Vec<Vec<u8>>,
}

impl<const W: usize, const K: usize> Bench<W, K> {
    pub fn new(gaps: u32, seed: u64) -> Self {
        let mut tb = Tb::with_seed(&format!("flows{W}"), Flows::<W, K, { NF as usize }, LG, G>::default(), seed);
        let pool = (0..POOL).map(|n| any(tb.rng(), n)).collect();
        Bench {
            tb,
            leavers: VecDeque::new(),
            answers: VecDeque::new(),
            told: BTreeMap::new(),
            uses_out: VecDeque::new(),
            unasked: 0,
            again: BTreeMap::new(),
            leaving: 0,
            gaps,
            beats: VecDeque::new(),
            cycles: 0,
            port: FlowPortCtx::default(),
            networks: Networks::default(),
            known: Networks::default(),
            past: Past::default(),
            was_off: false,
            showed: false,
            by: 0,
            judged: VecDeque::new(),
            expected: VecDeque::new(),
            out: Vec::new(),
            stat: BTreeMap::new(),
            counts: BTreeMap::new(),
            flows: BTreeMap::new(),
            uses: 0,
            edited: 0,
            lines: BTreeMap::new(),
            tables: Tables::default(),
            placement: Table::new(LG as u32),
            homes: Table::new(LG as u32),
            rules: Rules::new(G),
            whole: BTreeMap::new(),
            writes: VecDeque::new(),
            pool,
        }
    }

    pub fn push(&mut self, came: Came) {
        let last = came.frame.len().div_ceil(K) - 1;
        for (n, bytes) in came.frame.chunks(K).enumerate() {
            self.beats.push_back((bytes.to_vec(), n == last, came.clone(), n * K + bytes.len()));
        }
    }

    pub fn push_any(&mut self) {
        let rng = self.tb.rng();
        let frame = self.pool[rng.below(POOL as u64) as usize].clone();
        let came = Came { frame, bad: rng.percent(10), whence: any_whence(rng) };
        self.push(came);
    }

    pub fn cycle(&mut self) {
        self.cycles += 1;
        let gap = self.gaps > 0 && self.tb.rng().percent(self.gaps);
        let beat = if gap { None } else { self.beats.pop_front() };
        let rng = self.tb.rng();
        let (bytes, last, bad, whence) = match &beat {
            // Of a bad frame the last beat says so.
            Some((bytes, last, came, _)) => (bytes.clone(), *last, *last && came.bad, came.whence),
            None => (Vec::new(), rng.percent(50), rng.percent(50), any_whence(rng)),
        };
        if let Some((_, last, came, at)) = &beat {
            if self.past.by {
                // It passes, whatever the port says by the time of its window.
                if *at <= K {
                    self.by += 1;
                    self.expected.push_back((came.frame.clone(), came.bad, came.whence.network, 0));
                }
            } else if *at == WINDOW.min(came.frame.len()) || (*at > WINDOW && *at - bytes.len() < WINDOW) || (*last && *at < WINDOW) {
                self.judged.push_back((self.cycles + ASKED, came.clone()));
            }
        }
        self.past.cycle(self.was_off, beat.as_ref().map(|(_, last, ..)| *last), self.showed && !self.past.by);
        self.was_off = !self.port.valid();
        let mut data = bytes.clone();
        data.extend(self.tb.rng().bytes(K - bytes.len()));
        self.tb.set("s$valid", beat.is_some().into());
        self.tb.set_wide("s$data", &words(&data)[..]);
        self.tb.set("s$keep", if bytes.is_empty() { 0 } else { u64::MAX >> (64 - bytes.len()) });
        self.tb.set("s$last", last.into());
        self.tb.set("s_err", bad.into());
        let Whence { network, sender } = whence;
        self.tb.set_wide("s_network", &Fields::of::<Network>().pack(&[("tunnel", network.0.into()), ("function", network.1.into())])[..]);
        let (function, number) = sender.unwrap_or((network.1 & 63, network.1 & 63));
        let origin = Fields::of::<SentBy>().pack(&[("local", sender.is_some().into()), ("function", function.into()), ("network", number.into())]);
        self.tb.set_wide("s_origin", &origin[..]);
        self.known = self.networks;
        if self.tb.rng().percent(2) {
            self.networks = Networks::apart(self.tb.rng().next_u64());
        }
        self.tb.set_wide("networks", &testing::words(&self.networks)[..]);
        self.tb.set("port", u32::from_le_bytes(self.port.0).into());
        while self.judged.front().is_some_and(|(at, _)| *at == self.cycles) {
            let (_, came) = self.judged.pop_front().expect("there is one");
            self.judge(&came);
        }
        let command = if self.tb.rng().percent(60) { self.writes.pop_front() } else { None };
        self.tb.set("write", command.is_some().into());
        if let Some(command) = command {
            if command.table() == table::EXACT && command.opcode() != table::READ {
                self.lines.insert((command.way(), command.line()), command);
            }
            self.tb.set_wide("command", &words(&command.0)[..]);
        }
        self.leave();
        self.tb.begin();
        let [asked, used] = ["s_ask", "s_use"].map(|stream| self.tb.get(&format!("{stream}$valid")) & self.tb.get(&format!("{stream}$ready")) == 1);
        self.tb.end();
        if asked {
            self.answer();
        }
        if used {
            let (flow, len) = self.uses_out.pop_front().expect("it was offered");
            self.flows.entry(flow).or_default().take(len, 0);
        }
        self.told();
        assert_eq!((self.tb.get("s$ready"), self.tb.get("refused")), (1, 0));
        let stat = self.tb.get("stat");
        assert!(stat.count_ones() < 2);
        STATS.iter().enumerate().filter(|(i, _)| stat >> i & 1 == 1).for_each(|(_, name)| *self.stat.entry(name).or_default() += 1);
        self.hear();
    }

    /// Offers the first frame that is about to leave, and the first that flows are to count.
    pub fn leave(&mut self) {
        let leaving = self.leaving;
        let rng = self.tb.rng();
        if self.leavers.len() < 3 && rng.percent(leaving) {
            let frame = self.pool[rng.below(POOL as u64) as usize].clone();
            let network = rng.percent(60).then(|| rng.below(u64::from(NF)) as u16);
            self.leavers.push_back((frame, rng.below(u64::from(NF)) as u16, network));
        }
        self.tb.set("s_ask$valid", (!self.leavers.is_empty()).into());
        if let Some((frame, function, network)) = self.leavers.front() {
            let fields = Fields::of::<Leaving>();
            let (ended, port) = (frame.len() <= WINDOW, u128::from(FUNCTION_PORTS) + u128::from(*function));
            let len = frame.len().min(WINDOW) as u128;
            let domain = network.map_or(0, |network| network + 1);
            let mut bits = fields.pack(&[("ended", ended.into()), ("len", len), ("function", (*function).into()), ("port", port), ("domain", domain.into())]);
            let mut window = frame[..frame.len().min(WINDOW)].to_vec();
            window.resize(WINDOW, 0);
            fields.set_words(&mut bits, "window", &words(&window));
            self.tb.set_wide("s_ask$data", &bits[..]);
        }
        self.tb.set("s_use$valid", (!self.uses_out.is_empty()).into());
        if let Some((flow, len)) = self.uses_out.front() {
            self.tb.set_wide("s_use$data", &Fields::of::<Used>().pack(&[("flow", (*flow).into()), ("len", (*len).into())])[..]);
        }
    }

    /// The first of them is asked about in this cycle: what the model says.
    pub fn answer(&mut self) {
        let (frame, function, network) = self.leavers.pop_front().expect("it was offered");
        let answer = if self.port.valid() && self.port.egress() {
            let (verdict, roce) = self.verdict(&frame, Origin::received(network.is_some(), 0, Some((function, network.unwrap_or(0)))));
            let fate = Egress::of(&verdict);
            let returns = Egress::returns(&verdict, roce);
            *self.again.entry((returns, roce)).or_default() += u64::from(fate != Egress::Leaves);
            (function, (fate != Egress::Leaves, returns), Some(EGRESS[place(fate)]), verdict.count().then_some(verdict.flow()))
        } else {
            self.unasked += 1;
            (function, (false, false), None, None)
        };
        if let (.., Some(flow)) = answer {
            self.uses_out.push_back((flow, frame.len() as u64));
        }
        self.answers.push_back((self.cycles + ANSWERED, answer));
    }

    /// What was said of those that were asked about.
    pub fn told(&mut self) {
        let said = (self.tb.get("told_valid") == 1).then(|| {
            let told = self.tb.get_wide("told");
            let [function, drops, returns, judged, place, count, flow] = ["function", "drops", "returns", "judged", "place", "count", "flow"].map(|name| Fields::of::<Told>().get(&told, name) as u16);
            (function, (drops == 1, returns == 1), (judged == 1).then(|| EGRESS[usize::from(place)]), (count == 1).then_some(flow))
        });
        let due = self.answers.pop_front_if(|(at, _)| *at == self.cycles).map(|(_, answer)| answer);
        assert_eq!(said, due, "cycle {}", self.cycles);
        if let Some((_, _, Some(name), _)) = said {
            *self.told.entry(name).or_default() += 1;
        }
    }

    pub fn hear(&mut self) {
        self.showed = self.tb.get("m$valid") == 1;
        if !self.showed {
            return;
        }
        let keep = self.tb.get("m$keep");
        let bytes = keep.trailing_ones() as usize;
        let data: Vec<u8> = self.tb.get_wide("m$data").iter().flat_map(|w| w.to_le_bytes()).collect();
        self.out.extend(&data[..bytes]);
        let network = self.tb.get_wide("m_network");
        let [tunnel, function] = ["tunnel", "function"].map(|name| Fields::of::<Network>().get(&network, name) as u16);
        let want = self.expected.front().expect("a frame that is due");
        let note = self.tb.get("m_note") as u32;
        assert_eq!(((tunnel == 1, function), note), (want.2, want.3));
        if self.tb.get("m$last") == 1 {
            let got = (std::mem::take(&mut self.out), self.tb.get("m_err") == 1, (tunnel == 1, function), note);
            assert_eq!(Some(got), self.expected.pop_front());
        }
    }

    pub fn count(&mut self, name: &'static str) {
        *self.counts.entry(name).or_default() += 1;
    }

    /// The tables' verdict on what the block sees of a frame, as they are in this cycle; and whether it is RoCE.
    pub fn verdict(&mut self, frame: &[u8], origin: Origin) -> (Verdict, bool) {
        let miss = if self.port.drop_miss() { MissAction::Drop } else { MissAction::Exception };
        let port = Port { kind: PortKind::Uplink, class: self.port.class(), miss, bridge: self.port.bridge(), ..Default::default() };
        self.tables.generation = self.port.generation();
        match seen(frame).0 {
            Ok(layers) => {
                let facts = Facts::of(&layers);
                (self.tables.decide(&key(&layers, origin), &facts, &port), facts.roce)
            }
            Err(_) => (self.tables.decide(&FlowKey::default(), &Facts::DEEP, &port), false),
        }
    }

    /// What the model says about a frame whose window was there in a cycle with this port and these tables.
    pub fn judge(&mut self, came: &Came) {
        let Came { frame, bad, whence } = came;
        if !self.port.valid() {
            return self.expected.push_back((frame.clone(), *bad, whence.network, 0));
        }
        let (layers, cut) = seen(frame);
        let from = origin(*whence);
        let (verdict, roce) = self.verdict(frame, from);
        if verdict.count() && !cut && !bad {
            self.flows.entry(verdict.flow()).or_default().take(frame.len() as u64, 0);
            self.uses += 1;
        }
        let fate = Fate::of(&verdict, roce, NF, REWRITES as u32);
        let frame = match (fate, &layers) {
            (Fate::Function(_), Ok(layers)) => &edited(frame, layers, &verdict, &self.tables.rewrites).expect("the line is there"),
            _ => frame,
        };
        self.edited += u64::from(*frame != came.frame);
        let shown = if self.known.foreign(from.domain) { Through::Shown(0) } else { Through::Only(0) }.bits();
        let (goes, name) = match fate {
            Fate::Function(f) if cut && layers.is_ok() => (Some((true, (true, f))), "cut"),
            Fate::Function(f) => (Some((false, (true, f))), "port"),
            Fate::Software { unable } => (Some((false, (true, shown))), if unable { "unable" } else { "software" }),
            Fate::Drop(cause) => (None, dropped(cause)),
        };
        match (goes, bad) {
            (Some((cut, whose)), bad) => {
                let told = if let Fate::Software { .. } = fate { exception(&verdict, from.port, from.remote) } else { Exception::default() };
                let [low, middle, high] = told.0;
                self.expected.push_back((frame.clone(), *bad || cut, whose, u32::from_le_bytes([low, middle, high, 0])));
                if !bad {
                    self.count(name);
                }
            }
            (None, true) => self.count("bad"),
            (None, false) => self.count(name),
        }
    }

    pub fn drain(&mut self) {
        let leaving = std::mem::take(&mut self.leaving);
        while !self.beats.is_empty() {
            self.cycle();
        }
        (0..DRAIN).for_each(|_| self.cycle());
        assert!(self.expected.is_empty() && self.judged.is_empty(), "frames stay in the block");
        assert!(self.leavers.is_empty() && self.answers.is_empty() && self.uses_out.is_empty());
        self.leaving = leaving;
        assert_eq!(self.stat, self.counts);
        self.read_back();
    }

    /// The answer to a command that reads.
    pub fn read(&mut self, command: FlowCommand) -> [u8; table::ANSWER_BYTES] {
        self.writes.push_back(command);
        while !self.writes.is_empty() || self.tb.get("busy") == 1 {
            self.cycle();
        }
        let bytes: Vec<u8> = self.tb.get_wide("answer").iter().flat_map(|w| w.to_le_bytes()).collect();
        bytes.try_into().expect("64")
    }

    /// What flows have counted, which some forget with that, and what stands in lines of the exact table.
    pub fn read_back(&mut self) {
        for line in 0..1 << LG {
            let zero = self.tb.rng().percent(20);
            let answer = self.read(table::count(line, zero));
            let got = FlowRecord(answer[..FlowRecord::BYTES].try_into().expect("16"));
            let want = self.flows.get(&(line as u16)).copied().unwrap_or_default();
            assert_eq!((got.line(), got.packets(), got.bytes()), (line as u16, want.packets, want.bytes));
            assert!(got.last_use() <= self.tb.get("now") as u32 && answer[FlowRecord::BYTES..].iter().all(|byte| *byte == 0));
            if zero {
                self.flows.remove(&(line as u16));
            }
        }
        for ((way, line), command) in self.lines.clone().into_iter().filter(|((_, line), _)| line % 3 == 0) {
            let got = table::entry(&self.read(table::read_exact(way, line)));
            let key = FlowKey(command.0[16..16 + FlowKey::BYTES].try_into().expect("61"));
            assert_eq!(got, (command.opcode() == table::WRITE).then_some((key, command.action(), command.generation())));
        }
    }

    /// The next generation's tables.
    pub fn prepare(&mut self, next: u8) {
        let inbound = &mut self.tables.inbound;
        let old: Vec<_> = inbound.exact.keys().filter(|(_, generation)| *generation == next).copied().collect();
        for (key, generation) in old {
            inbound.exact.remove(&(key, generation));
            let write = self.placement.remove(&key, generation).expect("it was put there");
            self.writes.push_back(table::exact(write.place.way, write.place.line.into(), None));
        }
        for class in 0..4 {
            for packet in 0..4 {
                let mask = self.tb.rng().percent(85).then(|| any_mask(self.tb.rng()));
                inbound.profiles[usize::from(next)][usize::from(class * 4 + packet)] = mask;
                self.writes.push_back(table::profile(profile_line(next, class, packet), mask.as_ref()));
            }
        }
        let first = u64::from(next & 1) * ACTIONS;
        inbound.actions.resize(2 * ACTIONS as usize, None);
        // MAC addresses that the other generation's actions do not lead to.
        let half = u64::from(next & 1) * REWRITES / 2..u64::from(next & 1) * REWRITES / 2 + REWRITES / 2;
        self.tables.rewrites.resize(REWRITES as usize, (0, 0));
        for line in half.clone() {
            let macs = [0, 1].map(|_| self.tb.rng().next_u64() >> 16);
            self.tables.rewrites[line as usize] = (macs[0], macs[1]);
            self.writes.push_back(table::rewrite(line as u16, macs.map(mac)));
        }
        for line in first..first + ACTIONS {
            let action = self.tb.rng().percent(90).then(|| action(self.tb.rng(), half.clone()));
            inbound.actions[line as usize] = action;
            self.writes.push_back(table::action(line as u32, action.as_ref()));
        }
        for _ in 0..ENTRIES {
            let rng = self.tb.rng();
            // Frames that are cut are few, and none of another kind finds out that they are.
            let at = if rng.percent(40) { rng.below(POOL as u64 / 10) * 10 + 1 } else { rng.below(POOL as u64) };
            let (frame, whence) = (&self.pool[at as usize], any_whence(rng));
            let Ok(layers) = seen(frame).0 else { continue };
            let port = Port { class: rng.below(4) as u8, ..Default::default() };
            let Some(mask) = inbound.profiles[usize::from(next)][ferric_model::switch::tables::profile(&port, Facts::of(&layers).class)] else { continue };
            let (key, line) = (masked(&key(&layers, origin(whence)), &mask).0, first + rng.below(ACTIONS));
            if let Ok(writes) = self.placement.insert(Entry { key: key.into(), generation: next, result: line as u32 }) {
                for write in writes {
                    let entry = write.entry.map(|e| (FlowKey((&e.key[..]).try_into().expect("61")), e.result as u16, e.generation));
                    self.writes.push_back(table::exact(write.place.way, write.place.line.into(), entry.as_ref().map(|(key, line, generation)| (key, *line, *generation))));
                }
                inbound.exact.insert((key, next), line as u16);
            }
        }
        self.prepare_rules(next, first);
        self.prepare_stations(next);
    }

    pub fn prepare_stations(&mut self, next: u8) {
        let old: Vec<_> = self.tables.inbound.fdb.keys().filter(|(_, _, generation)| *generation == next).copied().collect();
        for (domain, mac, generation) in old {
            self.tables.inbound.fdb.remove(&(domain, mac, generation));
            let write = self.homes.remove(&station::key(domain, mac), generation).expect("it was put there");
            self.writes.push_back(table::station(write.place.way, write.place.line.into(), None));
        }
        for _ in 0..STATIONS {
            let rng = self.tb.rng();
            let (frame, whence) = (&self.pool[rng.below(POOL as u64) as usize], any_whence(rng));
            let Ok(layers) = seen(frame).0 else { continue };
            let key = key(&layers, origin(whence));
            let number = if rng.percent(20) { 1 } else { rng.range(6, 13) as u16 };
            let (to, result) = match rng.below(6) {
                0 => (Station::Remote(number), station::remote(number, 0)),
                1 => (Station::Group(number), station::group(number)),
                _ => (Station::Port(number as u8), station::port(number as u8)),
            };
            if let Ok(writes) = self.homes.insert(Entry { key: station::key(key.domain(), key.dmac()).into(), generation: next, result: result.into() }) {
                self.writes.extend(writes.iter().map(homed));
                self.tables.inbound.fdb.insert((key.domain(), key.dmac(), next), to);
            }
        }
    }

    pub fn prepare_rules(&mut self, next: u8, first: u64) {
        let old: Vec<usize> = self.whole.iter().filter(|(_, rule)| rule.generation == next).map(|(number, _)| *number).collect();
        for number in old {
            self.whole.remove(&number);
            self.writes.extend(self.rules.clear(number).unwrap());
        }
        for _ in 0..RULES {
            let number = self.tb.rng().below(self.rules.room() as u64 / 2) as usize * 2 + usize::from(next & 1);
            let rng = self.tb.rng();
            let frame = &self.pool[rng.below(POOL as u64) as usize];
            let Ok(layers) = parse(frame) else { continue };
            let key = key(&layers, origin(any_whence(rng)));
            let v6 = key.ethertype() == ethertype::IPV6;
            let seen = sources(v6);
            let mut mask = FlowKey::default();
            for bit in (0..KEY_BITS).filter(|bit| seen.contains(&Source::Key(*bit))) {
                mask.0[bit / 8] |= u8::from(rng.percent(15)) << (bit % 8);
            }
            mask.set_ethertype(u16::MAX);
            let action = (first + rng.below(ACTIONS)) as u16;
            let Said::By(pattern) = say(&key, &mask, v6) else { panic!("{mask:?} can be said") };
            self.writes.extend(self.rules.set(number, rules::Rule { pattern, action, generation: next }).unwrap());
            self.whole.insert(number, Rule { key, mask, action, generation: next });
        }
        self.tables.inbound.tcam = self.whole.values().copied().collect();
    }

    /// Lets the tables be written while frames of the old generation pass.
    pub fn write_all(&mut self, traffic: bool) {
        while !self.writes.is_empty() {
            if traffic && self.beats.len() < 20 {
                self.push_any();
            }
            self.cycle();
        }
    }
}
