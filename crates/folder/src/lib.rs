//! Access to folders that agents can write.
//!
//! A path below such a folder must not be checked and then opened again by name: an agent may put a link, a pipe or
//! another folder in its place in between. Everything here is opened relative to a handle, one name at a time, without
//! following a link. A test of the crate `testkit` lists the few files elsewhere that may open paths by name.

mod copy;
mod handle;
mod resolve;
mod sweep;
mod walk;

pub use copy::{CopiedEntry, FolderCopy, SkippedEntry, copy_entry};
pub use handle::{
    FolderEntries, FolderEntry, FolderHandle, FolderIdentity, MAX_ENTRIES, RESOLUTION_FACT,
    describe_file_type, file_size, file_type, is_link_refusal,
};
pub use resolve::resolve_existing;
pub use sweep::sweep_temporary;
pub use walk::{WalkedEntry, walk_folder};
