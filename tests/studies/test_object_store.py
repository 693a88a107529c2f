"""Rows in a real object store: a local S3 server, read by pyarrow and by s3fs."""

import numpy as np
import pytest

from heckmanfa import Heckman, scan, scan_parquet
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import DataError, InputError

pa = pytest.importorskip("pyarrow")
fs = pytest.importorskip("pyarrow.fs")
boto3 = pytest.importorskip("boto3")
server = pytest.importorskip("moto.server")
s3fs = pytest.importorskip("s3fs")

pytestmark = [
    pytest.mark.study,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:botocore"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

KEY, SECRET = "AKIAHECKMAN", "not-for-messages"
FEATURES = ["educ", "exper", "nwifeinc", "age", "kids5", "city"]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The women of Mroz in a bucket, partitioned by two columns; and the same folder here."""
    folder = tmp_path_factory.mktemp("bucket") / "women"
    mroz = load_mroz()
    mroz["city"] = mroz["city"].map({0.0: "no", 1.0: "yes"})
    mroz.to_parquet(folder, partition_cols=["city", "kids5"], index=False)
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    running.start()
    host, port = running.get_host_and_port()
    address = f"http://{host}:{port}"
    client = boto3.client(
        "s3",
        endpoint_url=address,
        region_name="us-east-1",
        aws_access_key_id=KEY,
        aws_secret_access_key=SECRET,
    )
    client.create_bucket(Bucket="lake")
    for file in folder.rglob("*.parquet"):
        client.upload_file(str(file), "lake", f"women/{file.relative_to(folder).as_posix()}")
    yield folder, address
    running.stop()


def ways_in(address):
    options = {"key": KEY, "secret": SECRET, "client_kwargs": {"endpoint_url": address}}
    place = address.removeprefix("http://")
    arrow = fs.S3FileSystem(
        access_key=KEY,
        secret_key=SECRET,
        endpoint_override=place,
        scheme="http",
        region="us-east-1",
        allow_bucket_creation=False,
    )
    url = f"s3://{KEY}:{SECRET}@lake/women?endpoint_override={place}&scheme=http&region=us-east-1"
    return {
        "a URL of pyarrow": (url, {}),
        "a file system of pyarrow": ("lake/women", {"filesystem": arrow}),
        "a pattern": ("lake/women/city=*/*/*.parquet", {"filesystem": arrow}),
        "options of s3fs": ("s3://lake/women", {"storage_options": options}),
        "a file system of s3fs": ("s3://lake/women", {"filesystem": s3fs.S3FileSystem(**options)}),
    }


def test_rows_in_an_object_store_give_the_model_of_local_files(store):
    folder, address = store
    expected = Heckman(["educ", "exper", "city"]).fit(scan_parquet(folder, "lwage", FEATURES))
    theirs = expected.tidy()
    for way, (source, options) in ways_in(address).items():
        rows = scan(source, "lwage", FEATURES, **options)
        mine = Heckman(["educ", "exper", "city"]).fit(rows).tidy()
        assert mine["term"].tolist() == theirs["term"].tolist(), way
        distance = np.abs(mine["estimate"] - theirs["estimate"]) / theirs["std_error"]
        assert distance.max() < 1e-8, way


def test_a_store_that_refuses_or_is_not_there_is_named_without_secrets(store):
    _, address = store
    for source, options in ways_in(address).values():
        missing = source.replace("women", "men")
        with pytest.raises((DataError, InputError), match="lake/men") as caught:
            scan(missing, "lwage", **options)
        assert SECRET not in str(caught.value)
        assert KEY not in str(caught.value)
    away = {"key": KEY, "secret": SECRET, "client_kwargs": {"endpoint_url": "http://127.0.0.1:9"}}
    with pytest.raises(DataError, match="s3://lake/women cannot be read") as caught:
        scan("s3://lake/women", "lwage", storage_options=away)
    assert SECRET not in str(caught.value)
