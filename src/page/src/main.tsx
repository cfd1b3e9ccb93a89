import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Diff } from "./diff";
import { readReport, type Report } from "./data";
import { Overview } from "./overview";
import { overviewLink, usePlace } from "./router";
import { RunPage } from "./run";
import { ThemeSwitch } from "./theme";
import "./style.css";

function Page({ results, comparison }: Report) {
  const place = usePlace();
  useEffect(() => {
    scrollTo(0, 0);
  }, [place.view, place.ids.join("/")]);
  const title = results.suite?.title || results.suite_id || "Recorded runs";
  document.title = `${place.view === "run" ? place.ids[0] : title} · clawtrace`;
  return (
    <>
      <header class="bar">
        <a class="brand" href={overviewLink(new URLSearchParams())}>clawtrace</a>
        <span class="where">{title}</span>
        <ThemeSwitch />
      </header>
      <main>
        {place.view === "run" ? (
          <RunPage results={results} id={place.ids[0] ?? ""} query={place.query} />
        ) : place.view === "diff" ? (
          <Diff results={results} left={place.ids[0] ?? ""} right={place.ids[1] ?? ""} />
        ) : (
          <Overview results={results} comparison={comparison} query={place.query} />
        )}
      </main>
      <footer>
        clawtrace {results.clawtrace} · evaluated {results.started_at} · this file holds everything it shows
      </footer>
    </>
  );
}

function App() {
  const [report, setReport] = useState<Report | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    readReport().then(setReport, (problem: Error) => setError(problem.message));
  }, []);
  if (error) return <p class="wait" role="alert">The results of this file cannot be read: {error}</p>;
  return report ? <Page {...report} /> : <p class="wait">Reading the results …</p>;
}

const place = document.getElementById("page")!;
place.textContent = "";
render(<App />, place);
