//! `ferric card dump`: configuration spaces as `lspci -F` reads them.
use ferric_driver::vfio_user::client::Client;
use ferric_driver::vfio_user::wire::index;
use std::error::Error;
use std::path::PathBuf;

/// Bytes of configuration space, and of a line.
const SPACE: usize = 4096;
const LINE: usize = 16;
/// Functions of a device.
const FUNCTIONS: usize = 8;

/// Options.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Sockets, in the order of the functions: the first is shown as 01:00.0, the next as 01:00.1.
    #[arg(required = true)]
    pub socket: Vec<PathBuf>,
}

/// One function in `lspci -xxxx`'s form.
fn text(number: usize, space: &[u8]) -> String {
    let mut out = format!("01:{:02x}.{} \n", number / FUNCTIONS, number % FUNCTIONS);
    for (at, line) in space.chunks(LINE).enumerate() {
        let bytes: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        out += &format!("{:02x}: {}\n", at * LINE, bytes.join(" "));
    }
    out
}

/// Prints them.
pub fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    for (number, socket) in options.socket.iter().enumerate() {
        let shown = socket.display();
        let mut client = Client::connect(socket).map_err(|e| match e.raw_os_error() {
            Some(libc::EBUSY) => format!("{shown}: the function is in use; its user may read its configuration space"),
            Some(libc::ENODEV) => format!("{shown}: there is no such function now: the card's physical function has not enabled it (ferric vf enable)"),
            _ => format!("{shown}: {e}; is it served? ferric card serve --socket {shown}"),
        })?;
        let mut space = [0; SPACE];
        client.read(index::CONFIG_REGION, 0, &mut space).map_err(|e| format!("{shown}: {e}"))?;
        println!("{}", text(number, &space));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_begin_with_their_offset() {
        let mut space = [0; SPACE];
        (space[0], space[0x10f], space[SPACE - 1]) = (0x11, 0xab, 0xcd);
        let shown = text(9, &space);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!((lines.len(), lines[0]), (1 + SPACE / LINE, "01:01.1 "));
        assert!(lines[1].starts_with("00: 11 00") && lines[1].len() == 3 + 3 * LINE, "{}", lines[1]);
        assert!(lines[17].starts_with("100: 00") && lines[17].ends_with(" ab") && lines[256].starts_with("ff0:") && lines[256].ends_with(" cd"));
    }
}
