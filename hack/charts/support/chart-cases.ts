import { chartNames, valuesFilesOf } from '../../generate/charts/generate-charts.ts';

/** A chart with one of the values files that it is tried with. */
export interface ChartCase {
  readonly chart: string;
  readonly valuesFile: string;
}

/** All charts with all their values files: `charts/<chart>/ci/*-values.yaml`. */
export async function chartCases(): Promise<ChartCase[]> {
  const cases = await Promise.all(
    chartNames.map(async (chart) =>
      (await valuesFilesOf(chart)).map((valuesFile) => ({ chart, valuesFile })),
    ),
  );
  return cases.flat();
}
