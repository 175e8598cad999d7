"""A server for the loopback of a machine: answers a request with the path that was asked for, and prints that."""

import http.server

PORT = 8080


class Echo(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        print(self.path, flush=True)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.path.encode())

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    server = http.server.HTTPServer(("127.0.0.1", PORT), Echo)
    print("ready", flush=True)
    server.serve_forever()
