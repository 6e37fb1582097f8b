"""Data connections of FTP, passive and active, and what only looks like one."""

from __future__ import annotations

from makepcap import Ends, Segment, Talk, get, pcap

from case_scripts.registry import case

CLIENT, SERVER = "10.0.0.1", "10.0.0.2"


@case
def ftp_data() -> bytes:
    """A file is fetched over a port that the server named, and one is sent over a port that the client named. The first
    looks like an answer of HTTP, the second like a request.

    Not to be mistaken for: HTTP, on these two connections; a data connection, on the last one, which asks for a page at
    a port that nobody named.
    """
    tape: list[Segment] = []

    def talk(client: tuple[str, int], server: tuple[str, int], leg: float = 1.0) -> Talk:
        return Talk(server_leg=leg, client_leg=0.05, ends=Ends(client, server), tape=tape)

    control = talk((CLIENT, 40_000), (SERVER, 21))
    control.open()

    def says(ms: float, answer: str) -> None:
        control.server(ms, f"{answer}\r\n".encode())

    def asks(ms: float, command: str, answer: str, late: float = 1.5) -> None:
        control.client(ms, f"{command}\r\n".encode())
        says(ms + late, answer)

    says(5, "220 ready")
    asks(6, "USER anna", "331 password")
    asks(8, "PASS x", "230 in")
    asks(10, "PASV", "227 Entering Passive Mode (10,0,0,2,36,39).")
    passive = talk((CLIENT, 40_001), (SERVER, 9255))
    passive.open(12)
    asks(14, "RETR a b.bin", "150 here it comes")
    passive.server(15.6, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "PAF")
    passive.client(15.7, flags="AF")
    passive.server(16.7)
    says(17, "226 done")
    asks(20, "PORT 10,0,0,1,4,1", "200 fine")
    control.client(22, b"STOR c\r\n")
    active = talk((SERVER, 20), (CLIENT, 1025), 0.05)
    active.open(23.5)
    says(23.7, "150 go on")
    active.server(25, get("/decoy"), "PAF")
    active.client(26, flags="AF")
    active.server(26.1)
    says(26.5, "226 done")
    asks(30, "QUIT", "221 bye")
    page = talk((CLIENT, 40_002), (SERVER, 9256))
    page.open(40)
    page.client(42, get("/page"))
    page.server(44, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    page.client(44.1)
    return pcap(sorted(tape, key=lambda segment: segment.time_ns), nanos=True)
