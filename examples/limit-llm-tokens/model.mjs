/** A fake language model: it streams as many tokens as the prompt asks for, such as "12 tokens", but at most `maxTokens`. */
export async function* complete(prompt, maxTokens) {
  const wanted = Number.parseInt(prompt, 10)
  const pieceTokens = 1_000
  for (let sent = 0; sent < Math.min(wanted, maxTokens); sent += pieceTokens) {
    // A model takes its time. Other work goes on in the meantime.
    await new Promise((resolve) => setImmediate(resolve))
    const tokens = Math.min(pieceTokens, wanted - sent, maxTokens - sent)
    yield { text: 'word '.repeat(tokens), tokens }
  }
}
