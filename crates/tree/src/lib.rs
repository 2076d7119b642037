//! Measures and removes folder trees that agents can write, through open folders.
//!
//! An agent controls the depth of a tree, the modes of its folders, and which entry a name refers to at any moment.
//! Therefore the functions of this crate do not recurse per level and do not keep a file descriptor per level. They do
//! not open paths that may exceed the length limit of the kernel, and they do not follow symbolic links.

mod folder_access;
mod measure;
mod remove;

pub use folder_access::{open_owned_file, open_owned_folder};
pub use measure::{MountRule, disk_bytes, file_identity, measure_tree};
pub use remove::remove_tree;
