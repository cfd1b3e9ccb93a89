// A plugin of OpenCode, which exits while its exporter still holds spans: it lets the process live on for five seconds.
export const LastSpans = async () => {
  const exit = process.exit.bind(process)
  process.exit = (code) => setTimeout(() => exit(code), 5000)
  return {}
}
