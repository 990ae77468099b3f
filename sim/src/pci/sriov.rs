//! Virtual functions that are there while their physical function says so (PCI Express base specification, SR-IOV: NumVFs, VF Enable, VF MSE).
use super::config::{self, ConfigSpace};
use super::door::Door;
use std::sync::{Arc, Mutex, MutexGuard};

/// What the physical function says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Says {
    /// So many virtual functions are there.
    count: u16,
    /// They answer accesses to their memory.
    memory: bool,
}

impl Says {
    fn of(config: &ConfigSpace) -> Self {
        let control = config.word(config::SRIOV_CONTROL);
        let enabled = control & config::VF_ENABLE != 0;
        Self { count: if enabled { config.word(config::SRIOV_NUM_VFS) } else { 0 }, memory: enabled && control & config::VF_MEMORY != 0 }
    }
}

/// The virtual functions of one card.
#[derive(Debug, Default)]
pub struct Virtuals {
    says: Mutex<Says>,
    /// Those that are served, with their numbers on the card (the first has number 1) and in the engine.
    served: Vec<(u16, usize, Arc<Door>)>,
}

impl Virtuals {
    /// None of `served` is there before the physical function says so; each is its number on the card, that in the engine, and its door.
    pub fn new(served: Vec<(u16, usize, Arc<Door>)>) -> Arc<Self> {
        Arc::new(Self { says: Mutex::default(), served })
    }

    fn says(&self) -> MutexGuard<'_, Says> {
        self.says.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// The card has function `number` now. The physical one, 0, is always there.
    pub fn has(&self, number: u16) -> bool {
        number <= self.says().count
    }

    /// Function `number` answers accesses to its memory, as far as the physical function is concerned.
    pub fn answers(&self, number: u16) -> bool {
        number == 0 || self.says().memory && self.has(number)
    }

    /// The physical function's configuration space has changed to `config`. The connections of functions that are there no longer are closed; the engine's numbers of those functions
    /// are returned, for their DMA to be cut: their sessions find out, and reset them, when they next look.
    pub fn follow(&self, config: &ConfigSpace) -> Vec<usize> {
        let says = Says::of(config);
        let before = std::mem::replace(&mut *self.says(), says);
        let gone = self.served.iter().filter(|(number, ..)| *number > says.count && *number <= before.count);
        gone.map(|(_, engine, door)| {
            door.expel();
            *engine
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pci::command::{Command, Handle};
    use crate::pci::dma::ClientMap;
    use crate::pci::function::Function;
    use crate::pci::session::{Seat, Session};
    use ferric_driver::vfio_user::client::Client;
    use ferric_driver::vfio_user::wire::index;
    use std::io::Read;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread::JoinHandle;

    /// Space of a physical function with three virtual ones, of which so many are enabled.
    fn enabled(count: u16) -> ConfigSpace {
        let mut config = ConfigSpace::new(0, 4, 1);
        config.write(config::SRIOV_NUM_VFS, &count.to_le_bytes());
        config.write(config::SRIOV_CONTROL, &(config::VF_ENABLE | config::VF_MEMORY).to_le_bytes());
        config
    }

    #[test]
    fn whoever_has_a_function_that_goes_is_told() {
        let doors: Vec<_> = (0..3).map(|_| Door::new(Arc::default())).collect();
        let virtuals = Virtuals::new(doors.iter().enumerate().map(|(n, door)| (n as u16 + 1, 10 + n, door.clone())).collect());
        assert!(virtuals.has(0) && virtuals.answers(0) && !virtuals.has(1) && !virtuals.answers(1));
        assert!(virtuals.follow(&enabled(2)).is_empty());
        assert!(virtuals.has(2) && virtuals.answers(2) && !virtuals.has(3));

        let (near, mut far) = UnixStream::pair().unwrap();
        let inside = doors[1].enter(&near).unwrap();
        drop(near);
        // Fewer: the second goes, the first stays.
        assert_eq!(virtuals.follow(&enabled(1)), [11]);
        assert!(virtuals.has(1) && !virtuals.has(2));
        assert_eq!(far.read(&mut [0]).unwrap(), 0, "the connection is closed");
        drop(inside);
        assert_eq!(virtuals.follow(&ConfigSpace::new(0, 4, 1)), [10]);
        assert!(!virtuals.has(1));
    }

    /// A session of one function, over an engine that only has maps: its client, and who runs it.
    fn session(seat: Seat, maps: &Arc<Mutex<[ClientMap; 2]>>) -> (Client, JoinHandle<()>) {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let path = std::env::temp_dir().join(format!("ferric-sriov-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
        let listener = UnixListener::bind(&path).unwrap();
        let maps = maps.clone();
        let engine = Handle::Direct(Arc::new(move |command| match command {
            Command::Map { function, change } => change(&mut maps.lock().unwrap()[function]),
            Command::Reset { done, .. } => drop(done.map(|done| done.try_send(()))),
            _ => {}
        }));
        let thread = std::thread::spawn(move || Session::new(listener.accept().unwrap().0, [seat].into(), engine).run());
        let client = Client::connect(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        (client, thread)
    }

    #[test]
    fn a_function_that_goes_masters_no_bus() {
        let doors = [0, 1].map(|_| Door::new(Arc::default()));
        let virtuals = Virtuals::new(vec![(1, 1, doors[1].clone())]);
        let seat = |number: u16| Seat { function: Arc::new(Function::new(0, number)), number: number.into(), door: doors[usize::from(number)].clone(), virtuals: Some(virtuals.clone()) };
        let maps: Arc<Mutex<[ClientMap; 2]>> = Arc::default();
        let masters = |function: usize| maps.lock().unwrap()[function].enabled;
        let (mut physical, first) = session(seat(0), &maps);
        let mut write = |at: usize, value: u16| physical.write(index::CONFIG_REGION, at as u64, &value.to_le_bytes(), false).unwrap();
        write(config::COMMAND, config::COMMAND_MASTER);
        write(config::SRIOV_NUM_VFS, 1);
        write(config::SRIOV_CONTROL, config::VF_ENABLE);
        // No session of its own is there to end it.
        maps.lock().unwrap()[1].enabled = true;
        write(config::SRIOV_CONTROL, 0);
        assert!(masters(0) && !masters(1), "when the write is answered");
        drop(physical);
        first.join().unwrap();
        assert!(!masters(0));
    }

    #[test]
    fn memory_is_the_physical_functions_to_switch_on() {
        let virtuals = Virtuals::new(Vec::new());
        let mut config = enabled(3);
        config.write(config::SRIOV_CONTROL, &config::VF_ENABLE.to_le_bytes());
        virtuals.follow(&config);
        assert!(virtuals.has(3) && !virtuals.answers(3) && virtuals.answers(0));
    }
}
