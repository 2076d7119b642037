//! The `image_view` tool: shows a model an image of the workspace.

use std::io::Read;

use polyclaw_domain::media::{Image, MAX_IMAGE_BYTES};
use polyclaw_domain::tool::{ToolOutcome, ToolScope, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments;
use crate::blocking;
use crate::error::{Error, Result};
use crate::text;
use crate::workspace::{self, WorkspacePath};

pub const TOOL_NAME: &str = "image_view";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageViewArguments {
    /// The image file, relative to the workspace.
    path: String,
}

pub fn spec() -> ToolSpec {
    arguments::build_tool_spec::<ImageViewArguments>(
        TOOL_NAME,
        "Shows you an image: PNG, JPEG, GIF or WebP, at most 5 MB. The image follows the tool results of this round.",
    )
}

pub async fn run(scope: &ToolScope, arguments: ImageViewArguments) -> Result<ToolOutcome> {
    let folder = scope.workspace.clone();
    blocking::run_blocking(move |_| {
        let place = workspace::resolve_path(&folder, &arguments.path)?;
        let image = read_image(&place)?;
        let name = text::name(place.relative_path().file_name().unwrap_or_default());
        let text = format!("{name}: {}, {} bytes", image.media_type(), image.bytes().len());
        Ok(ToolOutcome { images: vec![(name, image)], ..ToolOutcome::ok(text) })
    })
    .await
}

fn read_image(place: &WorkspacePath) -> Result<Image> {
    let (file, size) = place.open_file()?;
    let limit = MAX_IMAGE_BYTES as u64;
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|source| place.io_error(source))?;
    if bytes.len() > MAX_IMAGE_BYTES {
        return Err(Error::TooLarge {
            path: place.display_path().to_owned(),
            size: size.max(limit + 1),
            limit,
        });
    }
    let path = || place.display_path().to_owned();
    Image::from_bytes(bytes).map_err(|_| Error::Kind {
        path: path(),
        found: "another file type",
        wanted: "a PNG, JPEG, GIF or WebP image",
    })
}
