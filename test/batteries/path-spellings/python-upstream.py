"""An upstream that decodes and normalises paths the way Python applications do."""
import posixpath
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = posixpath.normpath(unquote(urlsplit(self.path).path)).replace("\\", "/").lower()
        self.send_response(200)
        if "/" + path.strip("/") == "/api/@me/login":
            self.send_header("X-Protected", "yes")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
