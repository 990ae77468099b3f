//! Manual pages and shell completions, from the command line's own description.
use crate::args::Cli;
use clap::CommandFactory;
use clap_complete::Shell;
use std::error::Error;
use std::fs;
use std::path::Path;

/// Writes `man/ferric*.1` and `completions/` for bash, zsh and fish.
pub fn run(folder: &Path) -> Result<(), Box<dyn Error>> {
    let (man, completions) = (folder.join("man"), folder.join("completions"));
    for dir in [&man, &completions] {
        fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    }
    clap_mangen::generate_to(Cli::command(), &man)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut Cli::command(), "ferric", &completions)?;
    }
    println!("written: {} and {}", man.display(), completions.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_gets_its_page() {
        Cli::command().debug_assert();
        let dir = std::env::temp_dir().join(format!("ferric-generate-{}", std::process::id()));
        run(&dir).unwrap();
        for page in ["ferric.1", "ferric-list.1", "ferric-perf.1", "ferric-card-serve.1"] {
            let text = fs::read_to_string(dir.join("man").join(page)).unwrap();
            assert!(text.contains(".SH OPTIONS"), "{page}");
        }
        let bash = fs::read_to_string(dir.join("completions/ferric.bash")).unwrap();
        assert!(bash.contains("selftest") && bash.contains("--vf-socket"));
        fs::remove_dir_all(dir).unwrap();
    }
}
