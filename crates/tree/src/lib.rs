//! Folder trees that agents can write: measured and removed by open folders.
//!
//! An agent decides how deep a tree is, which modes its folders have, and what stands at a name from one moment to the
//! next. So nothing here calls itself for each level, keeps a descriptor for each level, opens a path that may be longer
//! than the kernel takes, or follows a link.

mod folder_access;
mod measure;
mod remove;

pub use folder_access::{open_owned_file, open_owned_folder};
pub use measure::{MountRule, disk_bytes, file_identity, measure_tree};
pub use remove::remove_tree;
