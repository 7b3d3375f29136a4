import pytest
from bodega import Server


@pytest.fixture
def start(tmp_path):
    """Starts servers that end with the test."""
    servers = []

    def start_server(*arguments, **more):
        folder = tmp_path / str(len(servers))
        folder.mkdir()
        servers.append(Server(folder, *arguments, **more))
        return servers[-1]

    yield start_server
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def front(tmp_path_factory):
    """One front with the fake worker for all tests of a file that leave it as it was."""
    server = Server(tmp_path_factory.mktemp("front"), "--model-id", "fake")
    yield server
    server.stop()
