"""Asks an agent of the NeMo Agent Toolkit twice, in two runs of its workflow: the second one recalls the first."""

import asyncio
from pathlib import Path

from nat.runtime.loader import load_workflow

WORKFLOW = Path(__file__).parent / "workflow.yml"


async def ask(text: str, user: str) -> str:
    """The agent's answer, by a workflow that is loaded for it."""
    async with (
        load_workflow(WORKFLOW) as workflow,
        workflow.session(user_id=user) as session,
        session.run(text) as runner,
    ):
        return await runner.result(to_type=str)


async def main() -> None:
    """Sarah is remembered, and Tom is told nothing of her."""
    print("sarah:", await ask("My dog is called Rex.", "sarah"))
    print("sarah:", await ask("What is the name of my dog?", "sarah"))
    print("tom:", await ask("What is the name of my dog?", "tom"))


if __name__ == "__main__":
    asyncio.run(main())
