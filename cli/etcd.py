"""`etcd`: look at the etcds of a cluster, and mend them. A file for each subject; here is their order in the help."""

from __future__ import annotations

import typer

from cli import backups, etcd_members, etcd_restore, etcd_roll, etcd_space, etcd_state

app = typer.Typer(
    help="Look at etcds and mend them. docs/runbooks/etcd.md says which verb helps when.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command(epilog=backups.EXAMPLES)(backups.backups)
app.command(epilog=backups.MAKE_EXAMPLES)(backups.backup)
app.command(epilog=etcd_roll.EXAMPLES)(etcd_roll.roll)
app.command(epilog=etcd_state.EXAMPLES)(etcd_state.state)
app.command(epilog=etcd_restore.EXAMPLES)(etcd_restore.restore)
app.command(epilog=etcd_members.REPLACE_EXAMPLES)(etcd_members.replace)
app.command("recover-space", epilog=etcd_space.RECOVER_EXAMPLES)(etcd_space.recover_space)
app.command(epilog=etcd_space.DEFRAGMENT_EXAMPLES)(etcd_space.defragment)
app.command("move-leader", epilog=etcd_members.MOVE_EXAMPLES)(etcd_members.move_leader)
app.command(epilog=etcd_members.FORGET_EXAMPLES)(etcd_members.forget)
