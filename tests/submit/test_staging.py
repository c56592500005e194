"""Files reach the project: in how many POSTs, past which refusals, and when it ends early."""

import hashlib
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from boinc_gahp.backoff import Backoff
from boinc_gahp.config.settings import StagingSettings as Settings
from boinc_gahp.errors import ProjectError, StagingError
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.rpc.types import UploadFile
from boinc_gahp.submit.context import Uploads
from boinc_gahp.submit.staging import Staging
from tests.contract.replay import Reply
from tests.submit.scripted import FATAL, SECRET, URL, FileList, error


@dataclass
class Post:
    names: list[str]
    size: int
    form: bytes
    taken: bool = False


@dataclass
class FileServer(FileList):
    """Takes uploads as well, block by block.

    Attributes:
        limit: post_max_size.
        most: max_file_uploads.
        hook: is given the names of an upload that is under way, and the rest of its body; what it
            returns is the answer, None for the usual one.
        asked: is given each query_files.
    """

    limit: int = 8 << 20
    most: float = float("inf")
    hook: object = lambda _names, _rest: None
    posts: list[Post] = field(default_factory=list)
    asked: object = lambda _: None

    def query_files(self, arguments):
        reply = super().query_files(arguments)
        self.asked(arguments)
        return reply

    def send(self, request):
        body = request.body()
        try:
            first = next(iter(body))
            if b"<upload_files>" not in first:
                return self.script.send(request)
            names = [name.decode() for name in re.findall(rb"<phys_name>(.*?)<", first)]
            post = Post(names, request.body().len, first)
            self.posts.append(post)
            text = self.hook(names, body) or self.upload(post, body)
        finally:
            body.close()
        if isinstance(text, Reply):
            return text
        document = f"<?xml version='1.0'?>\n<upload_files>{text}</upload_files>"
        return Reply(document.encode(), {"Content-Type": "text/xml"})

    def upload(self, post, body):
        for _ in body:
            pass
        if post.size > self.limit:
            return error("can't parse request message: ")
        if len(post.names) > self.most:
            words = f"# of uploaded files ({self.most}) doesn't agree with request"
            return error(f"{words} ({len(post.names)})")
        for name in post.names:
            with self.lock:
                if name in self.present:
                    return FATAL
                self.present.add(name)
                self.associated.add(name)
        post.taken = True
        return "<success>1</success>"

    def staging(
        self,
        files,
        settings=Settings(),  # noqa: B008  (frozen)
        *,
        uploads=None,
        seconds=None,
    ):
        options = ClientOptions(retry_total=0)
        project = WebRpcs(URL, SECRET, options=options, transport=self)
        deadline = None if seconds is None else time.monotonic() + seconds
        return Staging(
            project if deadline is None else project.until(deadline),
            settings,
            files,
            7,
            uploads=uploads or Uploads(),
            deadline=deadline,
        )


@pytest.fixture
def server():
    return FileServer(set())


def make(directory, *sizes):
    """Return files with these sizes and distinct contents, by physical name."""
    files = {}
    for number, size in enumerate(sizes):
        data = (b"%d " % number * (size // 2 + 1))[:size]
        path = directory / f"in{number}.dat"
        path.write_bytes(data)
        md5 = hashlib.md5(data).hexdigest()
        name = f"{md5}.dat"
        files[name] = UploadFile(name, str(path), size, md5)
    return files


def test_uploads_are_kept_for_a_week_and_questions_change_no_delete_time(server, tmp_path):
    questions = []
    files = make(tmp_path, 1, 2)
    server.asked = questions.append
    server.staging(files).run()
    [post] = server.posts
    found = re.search(rb"<batch_id>7</batch_id><delete_time>(\d+)</delete_time>", post.form)
    assert 0 <= time.time() + 7 * 86400 - int(found[1]) < 60
    assert not any(question["delete_time"] for question in questions)


def test_a_limit_that_is_far_below_the_setting_is_found(server, tmp_path):
    files = make(tmp_path, *[10_000] * 60)
    server.limit = 13_000
    server.staging(files, Settings(files_per_post=60)).run()
    assert server.present == server.associated == set(files)


def test_posts_that_are_refused_together_teach_one_limit(server, tmp_path):
    files = make(tmp_path, *[250_000] * 24)
    server.limit = 1_000_000
    server.staging(files, Settings(bytes_per_post=1_510_000)).run()
    assert server.present == set(files)
    assert sum(post.taken for post in server.posts) == 8


def test_after_one_refusal_no_more_posts_of_its_size_are_begun(server, tmp_path):
    files = make(tmp_path, *[1_000] * 90)
    server.most = 5
    server.staging(files, Settings(files_per_post=10, concurrent_posts=1)).run()
    assert [len(post.names) for post in server.posts] == [10] + [5] * 18


@pytest.mark.long
def test_a_server_that_takes_no_uploads_at_all_is_an_error(server, tmp_path):
    server.most = 0
    with pytest.raises(ProjectError, match=r"uploaded files \(0\)"):
        server.staging(make(tmp_path, 10)).run()


def test_a_file_that_is_too_large_alone_names_the_limit(server, tmp_path):
    server.limit = 5_000
    with pytest.raises(StagingError, match=r"in1\.dat.*20000 bytes.*raise post_max_size, and"):
        server.staging(make(tmp_path, 10, 20_000)).run()


def test_an_error_that_no_repetition_helps_breaks_the_other_uploads_off(server, tmp_path):
    files = make(tmp_path, 6_000_000, 100)
    large, small = files
    staging = server.staging(files, Settings(files_per_post=1))
    begun = threading.Event()
    ended = []

    def hook(names, rest):
        if small in names:
            assert begun.wait(60)
            return error(f"{small} upload failed: exceeds upload_max_filesize of php.ini.")
        begun.set()
        assert staging._broken_off.wait(60)
        for _ in rest:
            pass
        ended.append(True)
        return None

    server.hook = hook
    with pytest.raises(StagingError, match=r"in1\.dat.*raise upload_max_filesize, and"):
        staging.run()
    assert not ended
    assert large not in server.present


def test_a_file_that_changed_is_an_error_and_nothing_stands_under_its_name(server, tmp_path):
    files = make(tmp_path, 100_000)
    (tmp_path / "in0.dat").write_bytes(b"x" * 100_000)
    with pytest.raises(StagingError, match="changed while it was sent") as caught:
        server.staging(files).run()
    assert caught.value.passes
    assert server.present == set()


def test_files_that_rivals_brought_during_an_upload_are_associated_too(server, tmp_path):
    files = make(tmp_path, *[100] * 80)
    names = list(files)
    rivals = {names[7], names[25], names[26], names[50], names[79]}

    def hook(_names, _rest):
        with server.lock:
            server.present.update(rivals)
            rivals.clear()

    server.hook = hook
    server.staging(files).run()
    assert server.present == server.associated == set(files)


CUT = "could not move /tmp/phpX to /p/download/3/x"


@pytest.mark.parametrize("after", [CUT, None], ids=["no", "no answer"])
def test_a_file_that_a_full_disk_cut_off_is_an_error_that_names_it(server, tmp_path, after):
    files = make(tmp_path, 100, 300_000)
    small, large = files
    damaged = set()

    def hook(names, _):
        if large in damaged.intersection(names):
            return error(f"file immutability violation for {large}")
        if large not in names:
            return None
        with server.lock:
            server.present.update(names)
            server.associated.add(small)
            damaged.add(large)
        if after is None:
            raise ConnectionResetError
        return error(after)

    server.hook = hook
    with pytest.raises(StagingError, match=rf"{large} with other contents.*{large}\.md5.*disk"):
        server.staging(files).run()


def test_of_the_files_of_a_post_the_one_that_differs_is_named(server, tmp_path):
    _, large = files = make(tmp_path, 100, 200)
    server.hook = lambda *_: error(f"file immutability violation for {large}")
    with pytest.raises(StagingError, match=f"{large} with other contents"):
        server.staging(files).run()


def test_a_file_whose_post_failed_is_sent_again_and_believed_when_the_project_compared(
    server, tmp_path
):
    files = make(tmp_path, 100, 200)

    def hook(names, _):
        if len(server.posts) > 1:
            return
        with server.lock:
            server.present.update(names)
        raise ConnectionResetError

    server.hook = hook
    server.staging(files).run()
    assert [len(post.names) for post in server.posts] == [2, 1, 1]
    assert server.associated == set(files)


@pytest.mark.parametrize("gateway", [True, False], ids=["504", "no answer"])
def test_a_file_that_the_project_still_works_on_is_waited_for(
    server, tmp_path, monkeypatch, gateway
):
    monkeypatch.setattr("boinc_gahp.submit.staging._BACKOFF", Backoff(0.01, 0.01))
    files = make(tmp_path, 100)
    there = []

    def arrive():
        with server.lock:
            server.present.update(files)

    def hook(_names, rest):
        there.append(bool(server.present))
        if len(there) > 1:
            return None
        for _ in rest:
            pass
        threading.Timer(0.8, arrive).start()
        time.sleep(0.5)  # the client waits as long for an answer, and then as long for the file
        if gateway:
            return Reply(b"", {}, status=504)
        raise TimeoutError

    server.hook = hook
    server.staging(files).run()
    assert there == [False, True]


def test_a_file_that_the_project_cannot_compare_because_its_disk_is_full_is_not_believed(
    server, tmp_path
):
    files = make(tmp_path, 100)

    def hook(names, _):
        with server.lock:
            server.present.update(names)
        return error("x upload failed because: Failed to write file to disk.")

    server.hook = hook
    with pytest.raises(ProjectError, match="Failed to write file to disk"):
        server.staging(files).run()


def test_a_shared_file_is_sent_once_and_whoever_waits_for_it_goes_on_when_it_is_there(
    server, tmp_path
):
    files = make(tmp_path, 100, 200)
    shared, other = files
    uploads, waits, other_may_end = Uploads(), threading.Event(), threading.Event()

    def hook(names, _):
        if shared in names:
            assert waits.wait(60)
        else:
            assert other_may_end.wait(60)

    def asked(arguments):
        if arguments["phys_name"] == [shared]:
            waits.set()

    server.hook, server.asked = hook, asked
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(server.staging(files, Settings(files_per_post=1), uploads=uploads).run)
        second = pool.submit(server.staging({shared: files[shared]}, uploads=uploads).run)
        try:
            second.result(60)
            assert other not in server.present
        finally:
            other_may_end.set()
        first.result(60)
    assert sum(shared in post.names for post in server.posts) == 1


def test_a_file_that_arrived_since_it_was_asked_for_is_asked_for_again_and_not_sent(
    server, tmp_path
):
    files = make(tmp_path, 100)
    uploads = Uploads()

    def meanwhile(_):
        server.asked = lambda _: None
        server.staging(files, uploads=uploads).run()

    # The other thread begins and ends between this one's question and its claim.
    server.asked = meanwhile
    server.staging(files, uploads=uploads).run()
    assert len(server.posts) == 1


def test_a_deadline_in_the_midst_of_an_upload_tells_how_far_it_came(server, tmp_path):
    files = make(tmp_path, 100, 500_000)
    small, _ = files
    one_by_one = Settings(files_per_post=1, concurrent_posts=1)
    staging = server.staging(files, one_by_one, seconds=3600.0)

    def hook(names, rest):
        if small not in names:
            next(iter(rest))
            staging._deadline = time.monotonic()
            raise TimeoutError  # as in a connection

    server.hook = hook
    with pytest.raises(StagingError, match=r"still staging, 1 of 2 files sent to .*release"):
        staging.run()


def test_before_the_project_was_asked_no_file_counts_as_sent(server, tmp_path):
    with pytest.raises(StagingError, match="0 of 3 files sent"):
        server.staging(make(tmp_path, 1, 2, 3), seconds=-1.0).run()
