//! A second thread for the second card. Within a cycle two cards know nothing of each other, and of a cycle of gateware the model takes nearly all of the time.
//!
//! Which thread runs a card changes no result: frames and boundary events are collected in the order of the cards, whoever ran them. The exception is memory of the
//! process that is mapped at both cards: of two accesses to the same bytes in one cycle either may be first, as on hardware. Memory of other devices is not run so at all.
use crate::card::Card;
use crate::trace::Event;
use std::any::Any;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Looks at the turn before whoever waits gives the processor away: a cycle of a card takes some 10 us, a look up to 50 ns.
const LOOKS: u32 = 1000;
/// So often the partner gives it away before it sleeps.
const PATIENCE: u32 = 16;

/// Whose turn it is.
mod turn {
    /// The partner looks for work.
    pub const REST: u8 = 0;
    /// The partner has a card.
    pub const WORK: u8 = 1;
    /// The card may be taken back.
    pub const DONE: u8 = 2;
    /// The partner sleeps, and has nothing.
    pub const ASLEEP: u8 = 3;
    /// The partner is to end.
    pub const END: u8 = 4;
}

/// A card and the cycle that it is to run.
struct Work {
    card: Card,
    cycle: u64,
    ticks: u64,
    trace: Option<Vec<Event>>,
    /// What the card's cycle panicked with.
    panic: Option<Box<dyn Any + Send>>,
}

#[derive(Default)]
struct Shared {
    turn: AtomicU8,
    /// Never waited for: `turn` says who may take it.
    work: Mutex<Option<Work>>,
}

impl Shared {
    fn put(&self, work: Work, turn: u8) {
        *self.work.lock().unwrap_or_else(PoisonError::into_inner) = Some(work);
        self.turn.store(turn, Ordering::Release);
    }
    fn take(&self) -> Option<Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
    /// Looks for a turn other than `turn`, and gives the processor away `patience` times at most. What it was last.
    fn wait_while(&self, turn: u8, patience: u32) -> u8 {
        for _ in 0..patience {
            for _ in 0..LOOKS {
                let now = self.turn.load(Ordering::Acquire);
                if now != turn {
                    return now;
                }
                std::hint::spin_loop();
            }
            std::thread::yield_now();
        }
        turn
    }
    fn run(&self) {
        loop {
            match self.wait_while(turn::REST, PATIENCE) {
                turn::WORK => {
                    let Some(mut work) = self.take() else { return };
                    let Work { card, cycle, ticks, trace, panic } = &mut work;
                    *panic = catch_unwind(AssertUnwindSafe(|| card.cycle(*cycle, *ticks, trace))).err();
                    self.put(work, turn::DONE);
                    while self.wait_while(turn::DONE, PATIENCE) == turn::DONE {}
                }
                turn::END => return,
                _ => {
                    if self.turn.compare_exchange(turn::REST, turn::ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                        while self.turn.load(Ordering::Acquire) == turn::ASLEEP {
                            std::thread::park();
                        }
                    }
                }
            }
        }
    }
}

/// The second thread. It sleeps when there is nothing to do for about a millisecond.
pub(crate) struct Partner {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// Where it was started: a copy of that process (`fork`) has no such thread.
    process: u32,
}

impl Partner {
    /// Starts it. Error: the system gives no thread.
    pub fn start() -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let its = shared.clone();
        let thread = std::thread::Builder::new().name("ferric-partner".into()).spawn(move || its.run())?;
        Ok(Self { shared, thread: Some(thread), process: std::process::id() })
    }

    /// The process is a copy of the one where it was started, and there is no such thread in it.
    pub fn lost(&self) -> bool {
        self.process != std::process::id()
    }

    /// Gives it `card` for a cycle. It comes back at once when the partner sleeps, and that wakes it.
    pub fn begin(&self, card: Card, cycle: u64, ticks: u64, traced: bool) -> Option<Card> {
        if self.shared.turn.compare_exchange(turn::ASLEEP, turn::REST, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.wake();
            return Some(card);
        }
        // It may fall asleep now: then it is woken with the work.
        let work = Work { card, cycle, ticks, trace: traced.then(Vec::new), panic: None };
        *self.shared.work.lock().unwrap_or_else(PoisonError::into_inner) = Some(work);
        if self.shared.turn.swap(turn::WORK, Ordering::AcqRel) == turn::ASLEEP {
            self.wake();
        }
        None
    }

    /// The card, and the boundary events of its cycle. What the cycle panicked with goes on here, and the card is lost with it.
    pub fn finish(&self) -> (Card, Option<Vec<Event>>) {
        while self.shared.wait_while(turn::WORK, PATIENCE) == turn::WORK {}
        let work = self.shared.take();
        self.shared.turn.store(turn::REST, Ordering::Release);
        let work = work.expect("the partner gives back what it got");
        if let Some(panic) = work.panic {
            resume_unwind(panic);
        }
        (work.card, work.trace)
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        if self.lost() {
            // There is nobody to wait for.
            std::mem::forget(self.thread.take());
            return;
        }
        // Whoever panicked may have left a card with it.
        while self.shared.wait_while(turn::WORK, PATIENCE) == turn::WORK {}
        self.shared.turn.store(turn::END, Ordering::Release);
        self.wake();
        if let Some(thread) = self.thread.take() {
            // It panics nowhere but in a card's cycle, which is caught.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::{Body, CardConfig};
    use crate::virtio::{Front, FunctionConfig, Seat, SeatEdge};
    use std::time::{Duration, Instant};

    /// A function that breaks in its first cycle.
    struct Breaks(Front);

    impl Seat for Breaks {
        fn front(&self) -> &Front {
            &self.0
        }
        fn front_mut(&mut self) -> &mut Front {
            &mut self.0
        }
        fn cycle(&mut self, _edge: &mut SeatEdge) -> bool {
            panic!("broken on purpose")
        }
        fn idle(&self) -> bool {
            true
        }
        fn chains(&self) -> [u64; 5] {
            [0; 5]
        }
    }

    fn card() -> Card {
        Card::new(&CardConfig { body: Body::Twin, width: 64, engines: "roce", ..Default::default() }, 0).unwrap()
    }

    /// A cycle by the partner, who is woken as often as it takes.
    fn cycle(partner: &Partner, mut card: Card, number: u64) -> Card {
        while let Some(back) = partner.begin(card, number, 0, false) {
            card = back;
        }
        partner.finish().0
    }

    /// It sleeps when nobody wants anything, gives the card back that finds it asleep, and wakes from that.
    #[test]
    fn it_sleeps_and_wakes() {
        let partner = Partner::start().unwrap();
        let mut card = card();
        for round in 0..3 {
            for number in 0..1000 {
                card = cycle(&partner, card, number);
            }
            let begun = Instant::now();
            while partner.shared.turn.load(Ordering::Acquire) != turn::ASLEEP {
                assert!(begun.elapsed() < Duration::from_secs(20), "round {round}: it does not sleep");
                std::thread::sleep(Duration::from_millis(1));
            }
            card = partner.begin(card, 0, 0, false).expect("nobody runs a card asleep");
        }
    }

    /// A panic in its card's cycle is one of whoever waits for the card, and the partner is there for the next one.
    #[test]
    fn a_panic_comes_through() {
        let partner = Partner::start().unwrap();
        let mut broken = card();
        broken.virtio.push(Box::new(Breaks(Front::new(4, &FunctionConfig::new(0, 4)))));
        let panic = catch_unwind(AssertUnwindSafe(|| cycle(&partner, broken, 0))).err().expect("a panic");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"broken on purpose"));
        cycle(&partner, card(), 1);
    }

    /// Whoever panics between both calls leaves a card behind, and the partner ends all the same.
    #[test]
    fn it_ends_with_a_card_in_hand() {
        let partner = Partner::start().unwrap();
        let mut card = card();
        while let Some(back) = partner.begin(card, 0, 0, false) {
            card = back;
        }
        drop(partner);
    }

    /// A copy of the process knows that there is no such thread in it, and does not wait for it to end.
    #[test]
    fn a_copy_of_the_process_has_lost_it() {
        let partner = Partner::start().unwrap();
        assert!(!partner.lost());
        // SAFETY: the child calls nothing but what is below, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let lost = partner.lost();
            drop(partner);
            // SAFETY: ends the process.
            unsafe { libc::_exit(if lost { 0 } else { 1 }) };
        }
        let mut status = -1;
        // SAFETY: `status` outlives the call.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0);
    }
}
