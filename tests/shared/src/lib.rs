//! The crates that the test programs and the tools of `ferric-tests` share, in one library that they load.

#![forbid(unsafe_code)]

use {ferric_boards as _, ferric_cli as _, ferric_driver as _, ferric_hdl as _, ferric_sim as _, ferric_station as _, ferric_twin as _};
