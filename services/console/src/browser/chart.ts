// Draws charts from the data of their element, and again after each update of a region.

interface ChartData {
  readonly labels: readonly string[];
  /** Unix times in seconds, then the values of each label. */
  readonly columns: readonly (readonly (number | null)[])[];
}

interface Plot {
  setData(data: ChartData['columns']): void;
  setSize(size: { readonly width: number; readonly height: number }): void;
}

declare const uPlot: new (
  options: Readonly<Record<string, unknown>>,
  data: ChartData['columns'],
  target: HTMLElement,
) => Plot;

const plots = new WeakMap<HTMLElement, { readonly plot: Plot; drawn: string }>();

/** Height of the legend below a chart. */
const legendHeight = 36;

/** A design token as a color that a canvas understands. */
function color(name: string): string {
  const element = document.createElement('span');
  element.className = `color-${name}`;
  document.body.append(element);
  const resolved = getComputedStyle(element).color;
  element.remove();
  return resolved;
}

const date = '{YYYY}-{MM}-{DD}';

/**
 * Labels of the time axis by the seconds between them, and texts below the first one of a year, a
 * day and a minute, in the form of uPlot.
 */
const timeLabels = [
  [86_400, '{MM}-{DD}', '\n{YYYY}', null, null, null, null, null, 1],
  [60, '{HH}:{mm}', `\n${date}`, null, '\n{MM}-{DD}', null, null, null, 1],
  [1, ':{ss}', `\n${date} {HH}:{mm}`, null, '\n{MM}-{DD} {HH}:{mm}', null, '\n{HH}:{mm}', null, 1],
];

const colors = ['accent', 'warn', 'dim', 'bad'];

function sizeOf(element: HTMLElement): { width: number; height: number } {
  return { width: element.clientWidth, height: element.clientHeight - legendHeight };
}

function draw(element: HTMLElement): void {
  const text = element.dataset.chart ?? '';
  const known = plots.get(element);
  if (known?.drawn === text) return;
  // Written by our own server.
  const { labels, columns } = JSON.parse(text) as ChartData;
  if (known !== undefined) {
    known.plot.setData(columns);
    known.drawn = text;
    return;
  }
  const axis = { stroke: color('dim'), grid: { stroke: color('rule'), width: 1 }, ticks: { show: false } };
  const series = labels.map((label, index) => ({
    label,
    stroke: color(colors[index] ?? 'dim'),
    width: 1.5,
    points: { show: false },
  }));
  // Without values there is a scale, too: the axis would go, and the plot would move.
  const y = { range: (_plot: Plot, _min: number | null, max: number | null) => [0, (max || 1) * 1.05] };
  const axes = [
    { ...axis, values: timeLabels },
    { ...axis, size: 56 },
  ];
  const time = { value: `${date} {HH}:{mm}:{ss}` };
  const options = { ...sizeOf(element), series: [time, ...series], scales: { y }, axes };
  plots.set(element, { plot: new uPlot(options, columns, element), drawn: text });
  new ResizeObserver(() => plots.get(element)?.plot.setSize(sizeOf(element))).observe(element);
}

function drawAll(): void {
  for (const element of document.querySelectorAll<HTMLElement>('[data-chart]')) draw(element);
}

document.addEventListener('htmx:after:swap', drawAll);
drawAll();
