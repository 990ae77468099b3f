//! Writes `docs/reference.md`.
mod page;

fn main() -> std::io::Result<()> {
    std::fs::write(page::PATH, page::render())
}
