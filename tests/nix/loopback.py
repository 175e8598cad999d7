"""A server for the loopback of a machine, and for a socket without a file: prints what it was asked for.

It answers a request with the path in it.
"""

import http.server
import socket
import threading

PORT = 8080
ABSTRACT_NAME = "claudebox-test"


class Echo(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        print(self.path, flush=True)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.path.encode())

    def log_message(self, *_: object) -> None:
        pass


def listen_without_a_file() -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{ABSTRACT_NAME}")
        listener.listen()
        while True:
            with listener.accept()[0] as connection:
                print(connection.recv(100).decode(), flush=True)


if __name__ == "__main__":
    threading.Thread(target=listen_without_a_file, daemon=True).start()
    server = http.server.HTTPServer(("127.0.0.1", PORT), Echo)
    print("ready", flush=True)
    server.serve_forever()
