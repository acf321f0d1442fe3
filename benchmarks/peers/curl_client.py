"""The smallest driver of pycurl's multi interface on an event loop."""

import asyncio

import pycurl


class Client:
    def __init__(self):
        self.loop = asyncio.get_running_loop()
        self.multi = pycurl.CurlMulti()
        self.multi.setopt(pycurl.M_SOCKETFUNCTION, self.watch)
        self.multi.setopt(pycurl.M_TIMERFUNCTION, self.wake_in)
        self.timer = None
        self.watched = {}
        self.free = []

    def watch(self, what, fd, multi, data):
        want = what & pycurl.POLL_INOUT
        have = self.watched.pop(fd, 0)
        if want & 1 and not have & 1:
            self.loop.add_reader(fd, self.act, fd, pycurl.CSELECT_IN)
        elif have & 1 and not want & 1:
            self.loop.remove_reader(fd)
        if want & 2 and not have & 2:
            self.loop.add_writer(fd, self.act, fd, pycurl.CSELECT_OUT)
        elif have & 2 and not want & 2:
            self.loop.remove_writer(fd)
        if want:
            self.watched[fd] = want

    def wake_in(self, milliseconds):
        if self.timer:
            self.timer.cancel()
            self.timer = None
        if milliseconds >= 0:
            self.timer = self.loop.call_later(milliseconds / 1000, self.act, pycurl.SOCKET_TIMEOUT, 0)

    def act(self, fd, event):
        self.multi.socket_action(fd, event)
        more = 1
        while more:
            more, good, bad = self.multi.info_read()
            for curl, error in [(curl, None) for curl in good] + [(each[0], each[2]) for each in bad]:
                self.multi.remove_handle(curl)
                self.free.append(curl)
                if error:
                    curl.done.set_exception(OSError(error))
                else:
                    curl.done.set_result(b"".join(curl.pieces))

    def get(self, url):
        curl = self.free.pop() if self.free else self.handle()
        curl.pieces.clear()
        curl.setopt(pycurl.URL, url)
        curl.done = self.loop.create_future()
        self.multi.add_handle(curl)
        return curl.done

    def handle(self):
        curl = pycurl.Curl()
        curl.pieces = []
        for option, value in (
            (pycurl.NOSIGNAL, 1),
            (pycurl.ACCEPT_ENCODING, ""),
            (pycurl.SSL_VERIFYPEER, 0),
            (pycurl.SSL_VERIFYHOST, 0),
            (pycurl.WRITEFUNCTION, curl.pieces.append),
        ):
            curl.setopt(option, value)
        return curl
