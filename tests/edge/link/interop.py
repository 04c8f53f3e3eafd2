"""The other side of test_link_interop: SP in plain Python against the link room.

    interop.py req URL        asks three times, prints the answers
    interop.py sub URL        prints the first topic below plan/ and its body
    interop.py rep            listens, prints its url, answers two requests with "py:" before them
    interop.py repdial URL    dials a listening lane, answers one request
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import sp  # noqa: E402


def main(mode, url=None):
    if mode == "req":
        with sp.Req(url) as r:
            print(*(r.ask(b"ask %d" % i).decode() for i in range(3)), sep=",")
            print(len(r.ask(b"x" * 300000)))
    elif mode == "sub":
        with sp.Sub(url, [b"plan/"]) as s:
            print("connected", flush=True)
            topic, body = s.next()
            print(topic.decode(), body.decode())
    else:
        with sp.RepListener() if mode == "rep" else sp.RepDialer(url) as r:
            print(getattr(r, "url", "connected"), flush=True)
            for _ in range(2):
                body, reply = r.next()
                reply(b"py:" + body)
            sys.stdin.read()


main(*sys.argv[1:])
