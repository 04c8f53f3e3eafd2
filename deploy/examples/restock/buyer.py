"""Orders what is short. It runs again from its beginning after each turn of calls: a call that was made returns its result."""
import csv
import os

import baton

agent = baton.Agent("buyer")
STOCK = os.path.abspath("stock.csv")


@agent.skill(calls=True, effects="none")
def restock(step: baton.Step, limit: int = 10) -> str:
    """Orders what is short in the stock, up to a price of a piece.

    Args:
        limit: the highest price of a piece in cents
    """
    [stock] = step.call_all(("files", "read", {"path": STOCK}))
    if stock["status"] != "completed":
        raise baton.Fail("the stock cannot be read: %s" % stock.get("error"), "RESOURCE_NOT_FOUND")
    rows = list(csv.DictReader(stock["text"].splitlines()))
    short = {row["item"]: int(row["minimum"]) - int(row["count"]) for row in rows if int(row["count"]) < int(row["minimum"])}
    prices = step.call_all(*[("shop", "price", {"item": item}) for item in short])
    cheap = [item for item, price in zip(short, prices) if price["status"] == "completed" and price["data"]["cents"] <= limit]
    if not cheap:
        return "nothing to order"
    orders = step.call_all(*[("shop", "order", {"item": item, "count": short[item]}) for item in cheap])
    return "\n".join("%s: %s" % (item, o.get("text", "").strip() or "not ordered, " + o["status"]) for item, o in zip(cheap, orders))


if __name__ == "__main__":
    agent.run()
