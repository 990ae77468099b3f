//! What fuzzed bytes are made into. Each module's `run` takes one input: libFuzzer calls it (`./scripts/soak fuzz`), and so does
//! `tests/corpus.rs` for every input kept in `corpus/`. What must not happen is a panic, a hang, or an access out of bounds.
#![warn(missing_docs)]
pub mod card;
pub mod cm;
pub mod program;
pub mod switch;
pub mod verbs;
pub mod vfio_user;
