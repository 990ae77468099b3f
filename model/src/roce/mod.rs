//! RoCEv2: headers, who is heard, groups, and what requester and responder owe each other.

pub mod groups;
pub mod header;
pub mod peer;
pub mod requester;
pub mod responder;
