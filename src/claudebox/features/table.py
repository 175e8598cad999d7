"""The features, in the order in which they decide: what grants comes first, then what covers it.

The mounts are in the same order: at the same path, a later one wins over an earlier one.
"""

from __future__ import annotations

from claudebox.features import Feature
from claudebox.features.allowlist import ALLOWLIST
from claudebox.features.broker import BROKER
from claudebox.features.caches import Caches, Warnings
from claudebox.features.claude import Agents, Claude, Options, ProjectSettings
from claudebox.features.environment import Environment, Routes
from claudebox.features.git import GIT, Hooks, Shim
from claudebox.features.guard import Guarding, Report
from claudebox.features.kernel import KernelFeature
from claudebox.features.limits import LIMITS
from claudebox.features.login import LOGIN, NoCredential
from claudebox.features.network import NETWORK_FEATURE
from claudebox.features.nix import NIX_FEATURE, Closure
from claudebox.features.project import Project, Reach
from claudebox.features.review import ReviewFeature
from claudebox.features.secrets import Masks
from claudebox.features.secrets.mounted import Mounted
from claudebox.features.system import Certificates, Command, Etc, Identity, System
from claudebox.features.toolchains import Toolchains
from claudebox.features.wishes import Hides, Wishes
from claudebox.settings.table import OWN, Table

FEATURES: tuple[Feature, ...] = (
    Command(),
    System(),
    NIX_FEATURE,
    Etc(),
    NETWORK_FEATURE,
    ALLOWLIST,
    Identity(),
    Reach(),
    Claude(),
    Agents(),
    LOGIN,
    NoCredential(),
    BROKER,
    GIT,
    Project(),
    Certificates(),
    Routes(),
    ProjectSettings(),
    Options(),
    Toolchains(),
    Wishes(),
    Caches(),
    Warnings(),
    Guarding(),
    Masks(),
    Hides(),
    Mounted(),
    KernelFeature(),
    ReviewFeature(),
    Report(),
    Hooks(),
    Shim(),
    LIMITS,
    Environment(),
    Closure(),
)

SETTINGS = Table((*OWN, *(setting for feature in FEATURES for setting in feature.settings)))
