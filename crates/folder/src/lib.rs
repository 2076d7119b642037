//! Access to folders that agents can write.
//!
//! A path below such a folder must not be checked and then opened again by name, because an agent may replace it with a
//! symbolic link, a pipe or another folder in between. This crate opens each entry relative to a handle, one name at a
//! time, without following symbolic links. A test of the crate `testkit` lists the few files elsewhere that may open
//! paths by name.

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
