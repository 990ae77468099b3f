//! Why a replay could not be done or did not agree.

/// A replay's failure.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be read as a capture.
    #[error("{0}")]
    Capture(String),
    /// The capture is readable but says something the replay cannot use.
    #[error("{0}")]
    Exchange(String),
    /// The machine under test did not behave as the captured one.
    #[error("{0}")]
    Differs(String),
    /// The machine under test could not be set up or driven.
    #[error("{0}")]
    Endpoint(String),
}

impl From<ferric_driver::Error> for Error {
    fn from(e: ferric_driver::Error) -> Self {
        Self::Endpoint(e.to_string())
    }
}

/// Result with the replay's error.
pub type Result<T> = std::result::Result<T, Error>;
