// Prices in the writing of each country. A project of its own has baton.mjs beside it: import { Agent, Fail } from "./baton.mjs";
const { Agent, Fail } = await import(process.env.BATON_MJS ?? "./baton.mjs");

const countries = { de: ["de-DE", "EUR", 1], us: ["en-US", "USD", 1.25], gb: ["en-GB", "GBP", 0.75] }; // writing, currency, rate to the euro
const agent = new Agent("pricer", { description: "Writes price lists." });

agent.skill("list", {
  description: "The prices of all goods, as a country writes them.", effects: "none",
  properties: { country: { type: "string" }, rows: { type: "array", items: { type: "array" } } }, required: ["country", "rows"],
}, ({ country, rows }, step) => {
  if (!countries[country]) throw new Fail(`country '${country}': expected one of ${Object.keys(countries).join(", ")}`, "VALIDATION_ERROR", { retryable: false });
  const [locale, currency, rate] = countries[country];
  const money = new Intl.NumberFormat(locale, { style: "currency", currency });
  return rows.map(([item, cents], i) => {
    step.progress({ percent: Math.round((100 * (i + 1)) / rows.length), text: item });
    return { item, price: money.format((Number(cents) / 100) * rate).replace(/\s/g, " ") };
  });
});

agent.skill("page", {
  description: "One page of the lists of all countries.", effects: "none",
  properties: { countries: { type: "array" }, lists: { type: "array" } }, required: ["countries", "lists"],
}, function* ({ countries: names, lists }) {
  for (const [i, list] of lists.entries()) {
    yield list.status === "completed" ? `${names[i]}: ${list.data.map((row) => `${row.item} ${row.price}`).join(", ")}\n`
      : `${names[i]}: no list, as ${list.error}\n`;
  }
});

await agent.run();
