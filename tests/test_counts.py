"""Does latpcap count as many requests of a protocol as tshark does? Skipped without tshark."""

from __future__ import annotations

import subprocess

import pytest
from conftest import ROOT
from tsharkfacts import needs_tshark

import latpcap as lp

TO_SERVER = "tcp.dstport==80"
OF_ASKS = "openflow_v4.type in {5, 18, 20, 24}"
ISCSI_ASKS = "iscsi.opcode in {1, 3}"
ANSWERED = "!(ldap.protocolOp==2)"  # an unbind has no answer, and is no request
# protocol: the capture, how tshark is told, its filter, and the field of which each value is a request
COUNTED = {
    "http": ("sample_pcaps/nginx-latency.pcap", "", "http.request", "http.request.method"),
    "http2": ("tests/cases/http2_streams/capture.pcap", "http2", TO_SERVER, "http2.headers.method"),
    "grpc": ("tests/cases/grpc_calls/capture.pcap", "http2", TO_SERVER, "http2.headers.method"),
    "modbus": ("tests/cases/modbus_polls/capture.pcap", "mbtcp", TO_SERVER, "mbtcp.trans_id"),
    "dnp3": ("tests/cases/dnp3_polls/capture.pcap", "dnp3", f"{TO_SERVER} && dnp3.al.func > 0", "dnp3.al.func"),
    "openflow": ("tests/cases/openflow_controller_asks/capture.pcap", "openflow", OF_ASKS, "openflow_v4.type"),
    "s7comm": ("tests/cases/s7_reads/capture.pcap", "tpkt", "s7comm.header.rosctr==1 || cotp.type==0xe", "cotp.type"),
    "iscsi": ("tests/cases/iscsi_read_and_write/capture.pcap", "iscsi", ISCSI_ASKS, "iscsi.opcode"),
    "opcua": ("tests/cases/opcua_services/capture.pcap", "opcua", TO_SERVER, "opcua.transport.type"),
    "gearman": ("tests/cases/gearman_jobs/capture.pcap", "gearman", f"{TO_SERVER} && gearman", "gearman.pkt_type"),
    "enip": ("tests/cases/enip_reads/capture.pcap", "enip", TO_SERVER, "enip.command"),
    "ldap": ("tests/cases/ldap_searches_at_once/capture.pcap", "ldap", f"{TO_SERVER} && {ANSWERED}", "ldap.messageID"),
}


def told(path: str, dissector: str, chosen: str, field: str) -> list[str]:
    """The field's values in the frames that pass, several of one frame apart."""
    decode = ["-d", f"tcp.port==80,{dissector}"] if dissector else []
    command = ["tshark", "-n", "-r", str(ROOT / path), *decode, "-Y", chosen, "-T", "fields", "-E", "aggregator=,"]
    done = subprocess.run([*command, "-e", field], capture_output=True, text=True, check=True)
    return [value for line in done.stdout.splitlines() for value in line.split(",") if value]


@needs_tshark
@pytest.mark.parametrize("protocol", COUNTED)
def test_as_many_requests_as_tshark_counts(protocol: str) -> None:
    path, *how = COUNTED[protocol]
    exchanges = lp.read(ROOT / path).exchanges
    assert (exchanges["protocol"] == protocol).sum() == len(told(path, *how)) > 0


@needs_tshark
@pytest.mark.parametrize("case", ["dns_slow", "dns_quick"])
def test_as_many_lookups_as_tshark_counts(case: str) -> None:
    path = f"tests/cases/{case}/capture.pcap"
    lookups = lp.read(ROOT / path).lookups
    asked = [int(number, 16) for number in told(path, "", "dns.flags.response==0", "dns.id")]
    assert lookups["id"].tolist() == list(dict.fromkeys(asked))
    assert lookups["repeats"].sum() + len(lookups) == len(asked)
    assert lookups["end"].notna().sum() == len(told(path, "", "dns.flags.response==1", "dns.id"))
