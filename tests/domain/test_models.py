"""Which model is which tenant's."""

from __future__ import annotations

from remora_server.domain.models import EVERYBODY, ServedModel, ServedModels, Tenants

SMALL, LARGE, SILENT = ServedModel("small", late=True), ServedModel("large"), ServedModel()


def test_a_tenant_has_its_own_model_or_the_default() -> None:
    models = ServedModels(SMALL, {"big": LARGE, "quiet": SILENT})

    assert [models.of(tenant) for tenant in ("big", "quiet", "some", "")] == [LARGE, SILENT, SMALL, SMALL]


def test_every_tenant_is_in_the_group_of_its_model_alone() -> None:
    models = ServedModels(SMALL, {"big": LARGE, "quiet": SILENT, "vast": LARGE, "same": SMALL})

    groups = models.groups()

    assert set(groups) == {SMALL, LARGE, SILENT}
    for tenant in ("big", "quiet", "vast", "same", "some", ""):
        assert [model for model, tenants in groups.items() if tenant in tenants] == [models.of(tenant)]


def test_one_model_is_everybodys() -> None:
    assert ServedModels(SMALL).groups() == {SMALL: EVERYBODY}
    assert ServedModels().of("anybody").name == ""
    assert "anybody" in EVERYBODY
    assert "b" not in Tenants(frozenset("a"))
