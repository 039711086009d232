"""Settings: who wins, where a value comes from, what is refused."""

import re

import pytest

from fragdex.errors import ConfigError
from fragdex.service.config import Settings, load_settings


def test_a_flag_wins_over_the_environment_over_the_file_over_the_default(tmp_path, monkeypatch):
    file = tmp_path / "fragdex.toml"
    file.write_text('port = 1\nhost = "file"\nmax_image_bytes = "3MiB"\nlog_level = "debug"\n')
    monkeypatch.setenv("FRAGDEX_PORT", "2")
    monkeypatch.setenv("FRAGDEX_HOST", "environment")
    monkeypatch.setenv("FRAGDEX_CORS_ORIGINS", "https://a.example, https://b.example")
    monkeypatch.setenv("FRAGDEX_CONFIG", str(file))
    settings = load_settings(port=3, host=None)
    assert (settings.port, settings.origins["port"]) == (3, "flag --port")
    assert (settings.host, settings.origins["host"]) == ("environment", "environment FRAGDEX_HOST")
    assert (settings.max_image_bytes, settings.log_level) == (3 << 20, "debug")
    assert settings.origins["log_level"] == f"file {file}"
    assert settings.origins["data"] == "default"
    assert settings.cors_origins == ("https://a.example", "https://b.example")


def test_settings_made_by_hand_read_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("FRAGDEX_PORT", "2")
    assert Settings(data=tmp_path).port == 8000


def test_database_and_store_lie_in_the_data_folder(tmp_path):
    settings = Settings(data=tmp_path / "with blank")
    assert settings.database_url == f"sqlite:///{tmp_path}/with blank/fragdex.db"
    assert settings.store_folder == tmp_path / "with blank" / "store"
    assert Settings(store_url="s3://bucket/prefix").store_folder is None


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"port": "http"}, "port"),
        ({"port": 70_000}, "port"),
        ({"log_level": "loud"}, "log_level"),
        ({"max_image_bytes": "many"}, "max_image_bytes"),
        ({"public_url": "media.example"}, "public_url"),
        ({"public_url": "https://media.example/a/../b"}, "public_url"),
        ({"public_url": "https://media.example/a//b"}, "public_url"),
        ({"public_url": "https://media.example/a?b"}, "public_url"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_with_its_origin(flags, named):
    with pytest.raises(ConfigError, match=rf"{named} \(flag --{named.replace('_', '-')}\)"):
        load_settings(**flags)


@pytest.mark.parametrize("text", ["port = ", "[port]\nx = 1", 'prot = "1"', "\xff"])
def test_a_file_that_cannot_be_used_is_refused(tmp_path, text):
    file = tmp_path / "fragdex.toml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError):
        load_settings(file)
    with pytest.raises(ConfigError, match="No such file"):
        load_settings(tmp_path / "none.toml")


def test_secrets_are_not_shown():
    settings = Settings(
        database_url="postgresql+psycopg://media:hidden@db/fragdex?sslpassword=hidden",
        store_url="s3://bucket/prefix?aws_secret_access_key=hidden",
    )
    assert "hidden" not in str(settings.shown())
    assert "media:***@db/fragdex" in settings.shown()["database_url"]


def test_a_variable_that_is_no_setting_is_refused(monkeypatch):
    monkeypatch.setenv("FRAGDEX_PROT", "9000")
    with pytest.raises(
        ConfigError, match="FRAGDEX_PROT in the environment is not a setting"
    ) as error:
        load_settings()
    assert error.value.advice == "did you mean FRAGDEX_PORT?"


@pytest.mark.parametrize("service", ["FRAGDEX", "FRAGDEX_API", "FRAGDEX_WORKER"])
def test_what_kubernetes_says_of_a_service_of_that_name_is_no_setting(service, monkeypatch):
    """Every pod refused to start beside a Service that is named fragdex."""
    address = "tcp://10.0.0.1:8000"
    for name, value in {
        "SERVICE_HOST": "10.0.0.1",
        "SERVICE_PORT": "8000",
        "SERVICE_PORT_HTTP": "8000",
        "PORT": address,
        "PORT_8000_TCP": address,
        "PORT_8000_TCP_PROTO": "tcp",
        "PORT_8000_TCP_PORT": "8000",
        "PORT_8000_TCP_ADDR": "10.0.0.1",
    }.items():
        monkeypatch.setenv(f"{service}_{name}", value)
    settings = load_settings()
    assert (settings.port, settings.origins["port"]) == (8000, "default")
    assert settings.worker_port == Settings().worker_port
    monkeypatch.setenv("FRAGDEX_API_PORT", "8000")
    with pytest.raises(ConfigError, match="FRAGDEX_API_PORT in the environment"):
        load_settings()


def test_options_of_an_object_store_are_told_by_name_alone(monkeypatch):
    monkeypatch.setenv("FRAGDEX_STORE_OPTIONS", '{"endpoint": "http://s3.test", "region": "x"}')
    settings = load_settings()
    assert settings.store_options == {"endpoint": "http://s3.test", "region": "x"}
    assert settings.shown()["store_options"] == "endpoint=*** region=***"


def test_variables_of_commands_do_not_stop_a_service(root, monkeypatch):
    names = {
        name
        for path in (root / "src" / "fragdex" / "cli").glob("*.py")
        for name in re.findall(r'envvar="FRAGDEX_(\w+)"', path.read_text("utf-8"))
    }
    assert {"KEY", "URL", "WEBHOOK_SECRET"} <= names
    for name in names:
        monkeypatch.setenv(f"FRAGDEX_{name}", "anything")
    load_settings()
