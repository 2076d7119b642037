//! A server whose answers are those of a router. A handler that returns [`Cut`] closes the connection instead.

use axum::Router;
use axum::body::Body;
use axum::http::Response;
use axum::response::IntoResponse;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;

use super::server::{ConnectionCut, EmulatorServer};

/// Marks the response that stands for none, on its way through the router.
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
