import {
  AggregatorRegistry,
  collectDefaultMetrics,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from 'prom-client';

/** Metrics of a process, in a form that can be sent to another process. */
export type ProcessMetricValues = readonly MetricObjectWithValues<MetricValue<string>>[];

/** CPU, memory, event loop and garbage collection of this process. */
export class ProcessMetrics {
  readonly #registry = new Registry();
  readonly #labels: Readonly<Record<string, string>>;

  constructor(labels: Readonly<Record<string, string>> = {}) {
    this.#labels = labels;
    this.#registry.setDefaultLabels(labels);
  }

  /** Measures until the process ends. */
  start(): void {
    collectDefaultMetrics({ register: this.#registry });
  }

  read(): Promise<ProcessMetricValues> {
    return this.#registry.getMetricsAsJSON();
  }

  /**
   * The metrics in the text format of Prometheus, together with those of `others`: sums, but the
   * maximum of the event loop lag, because one slow process matters.
   */
  async format(others: readonly ProcessMetricValues[] = []): Promise<string> {
    if (others.length === 0) return this.#registry.metrics();
    const all = [await this.read(), ...others].map((metrics) =>
      metrics.map((metric) =>
        /eventloop_lag/.test(metric.name) ? { ...metric, aggregator: 'max' } : metric,
      ),
    );
    const sums = AggregatorRegistry.aggregate(all);
    sums.setDefaultLabels(this.#labels);
    return sums.metrics();
  }
}
