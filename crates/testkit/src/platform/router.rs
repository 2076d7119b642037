//! A server that answers with a router. A handler that returns [`ConnectionCut`] closes the connection instead.

use axum::Router;
use axum::body::Body;
use axum::http::Response;
use axum::response::IntoResponse;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;

use super::server::{ConnectionCut, EmulatorServer};

/// Marks the placeholder response for a cut connection on its way through the router.
#[derive(Clone, Copy)]
struct CutMark;

impl IntoResponse for ConnectionCut {
    fn into_response(self) -> Response<Body> {
        let mut response = Response::default();
        response.extensions_mut().insert(CutMark);
        response
    }
}

pub(super) fn serve_router(router: Router) -> EmulatorServer {
    let router = TowerToHyperService::new(router);
    EmulatorServer::start(move |request| {
        let answer = router.call(request);
        async move {
            let Ok(response) = answer.await;
            if response.extensions().get::<CutMark>().is_some() { Err(ConnectionCut) } else { Ok(response) }
        }
    })
}
