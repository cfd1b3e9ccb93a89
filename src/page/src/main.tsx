import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Diff } from "./diff";
import { readReport, readRun, type Report } from "./data";
import { Live } from "./live";
import { Overview } from "./overview";
import { Frame } from "./parts";
import { usePlace } from "./router";
import { RunPage, useDetails } from "./run";
import "./style.css";

function Page({ results, comparison, history }: Report) {
  const place = usePlace();
  const id = place.ids[0] ?? "";
  const details = useDetails(id);
  useEffect(() => {
    scrollTo(0, 0);
  }, [place.view, place.ids.join("/")]);
  const title = results.suite?.title || results.suite_id || "Recorded runs";
  document.title = `${place.view === "run" ? id : title} · clawtrace`;
  return (
    <Frame
      title={title}
      foot={`clawtrace ${results.clawtrace} · evaluated ${results.started_at} · this file holds everything it shows`}
    >
      {place.view === "run" ? (
        <RunPage results={results} history={history} details={details} id={id} query={place.query} />
      ) : place.view === "diff" ? (
        <Diff results={results} left={id} right={place.ids[1] ?? ""} />
      ) : (
        <Overview results={results} comparison={comparison} history={history} query={place.query} />
      )}
    </Frame>
  );
}

function App() {
  const [report, setReport] = useState<Report | null>(null);
  const [error, setError] = useState("");
  const { ids } = usePlace();
  useEffect(() => {
    for (const id of ids) void readRun(id); // while the results are unpacked
    readReport().then(setReport, (problem: Error) => setError(problem.message));
  }, []);
  if (error) return <p class="wait" role="alert">The results of this file cannot be read: {error}</p>;
  return report ? <Page {...report} /> : <p class="wait">Reading the results …</p>;
}

const place = document.getElementById("page")!;
const live = document.getElementById("live") !== null;
place.textContent = "";
render(live ? <Live /> : <App />, place);
