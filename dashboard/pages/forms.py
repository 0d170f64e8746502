"""The forms of the account and team pages, and how forms are drawn."""

from datetime import timedelta
from typing import TYPE_CHECKING

from django import forms
from django.contrib.auth.forms import BaseUserCreationForm
from django.forms.renderers import TemplatesSetting

from dashboard.models import Role, Scope, User

if TYPE_CHECKING:
    AccountForm = BaseUserCreationForm[User]
else:
    AccountForm = BaseUserCreationForm  # Django's forms take no type arguments at run time


class PlimsollRenderer(TemplatesSetting):
    form_template_name = "forms/form.html"
    field_template_name = "forms/field.html"


class TeamForm(forms.Form):
    name = forms.CharField(label="Team name", max_length=80)


class RoleForm(forms.Form):
    """`roles` are the ones the person may give; anything else is refused by the field itself."""

    role = forms.ChoiceField()

    def __init__(self, *args: object, roles: list[Role], **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.fields["role"].choices = [(role.value, role.label) for role in roles]  # type: ignore[attr-defined]


class InvitationForm(RoleForm):
    note = forms.CharField(
        label="Recipient",
        max_length=80,
        required=False,
        help_text="A note for you, such as a name. No email is sent.",
    )
    field_order = ["note", "role"]


class NewAccountForm(AccountForm):
    class Meta:
        model = User
        fields = ("username",)


SCOPE_HELP = {
    Scope.INGEST: "send transcripts and telemetry",
    Scope.PROXY: "call the model through the proxy",
    Scope.READ: "read metrics through the API",
    Scope.CONTENT: "also read prompts and responses (requires read)",
    Scope.COMPACT: "start compactions",
    Scope.ADMIN: "change team settings",
}


class KeyLimitsForm(forms.Form):
    """Empty: the installation's limit; 0: any number."""

    requests_per_minute = forms.IntegerField(label="Requests per minute", required=False, min_value=0, max_value=10**7)
    mib_per_minute = forms.IntegerField(label="MiB per minute", required=False, min_value=0, max_value=10**6)


class KeyForm(forms.Form):
    EXPIRIES = {"30": "in 30 days", "90": "in 90 days", "365": "in a year", "never": "never"}

    name = forms.CharField(label="Name", max_length=80, help_text="What uses the key, such as “laptop follower”.")
    scopes = forms.MultipleChoiceField(label="Scopes", widget=forms.CheckboxSelectMultiple)
    expires = forms.ChoiceField(label="Expires", choices=list(EXPIRIES.items()), initial="90")
    is_collector = forms.BooleanField(
        label="Collector key",
        required=False,
        help_text="One key shared by many people, such as an OTLP key in managed settings. Sessions have no owner "
        "until you assign their developers. Anyone with the key can add to sessions created by collector keys.",
    )

    def __init__(self, *args: object, scopes: list[Scope], may_collect: bool, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        if not may_collect:
            del self.fields["is_collector"]
        choices = [(scope.value, f"{scope.value}: {SCOPE_HELP[scope]}") for scope in scopes]
        self.fields["scopes"].choices = choices  # type: ignore[attr-defined]

    def clean_scopes(self) -> list[Scope]:
        scopes = [Scope(value) for value in self.cleaned_data["scopes"]]
        if Scope.CONTENT in scopes and Scope.READ not in scopes:
            raise forms.ValidationError("The content scope also requires the read scope.")
        return scopes

    def valid_for(self) -> timedelta | None:
        days = self.cleaned_data["expires"]
        return None if days == "never" else timedelta(days=int(days))
