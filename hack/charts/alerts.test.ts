// Every alert as the chart renders it, in the evaluator of Prometheus: firing, and not firing.
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { makeTextFolder } from '@tollgate/testkit/folders';
import { findBinary, programIsMissing } from '@tollgate/testkit/processes';
import { load } from 'js-yaml';
import t from 'tap';
import { type AlertRule, alertingCharts } from './support/alert-rules.ts';
import { helmIsMissing, renderChart } from './support/helm.ts';
import { parseManifests } from './support/manifests.ts';

/** A file of `promtool test rules`, as far as it is looked at here. */
interface AlertCases {
  readonly tests: readonly AlertCase[];
}

interface AlertCase {
  readonly name: string;
  readonly input_series: readonly { readonly series: string; readonly values: string }[];
  readonly alert_rule_test: readonly ExpectedAlerts[];
  readonly [field: string]: unknown;
}

interface ExpectedAlerts {
  readonly alertname: string;
  readonly exp_alerts?: readonly {
    readonly exp_labels?: Readonly<Record<string, string>>;
    readonly exp_annotations?: Readonly<Record<string, string>>;
  }[];
  readonly [field: string]: unknown;
}

interface RuleGroup {
  readonly name: string;
  readonly rules: readonly AlertRule[];
}

const skip = helmIsMissing() || programIsMissing('promtool');
const namespace = 'default';

for (const chart of alertingCharts) {
  t.test(`${chart}: every alert fires when it should, and only then`, { skip }, async (t) => {
    const groups = await renderGroups(chart);
    const rules = groups.flatMap((group) => group.rules);
    const service = `tg-${chart}-headless`;
    // Our own file, which promtool reads in whole.
    const cases = load(await readFile(`hack/charts/alerts/${chart}.yaml`, 'utf8')) as AlertCases;
    for (const { alert } of rules) {
      const expected = cases.tests
        .flatMap((test) => test.alert_rule_test)
        .filter(({ alertname }) => alertname === alert)
        .map(({ exp_alerts = [] }) => exp_alerts.length > 0);
      t.strictSame(new Set(expected), new Set([true, false]), `${alert} has a case of both kinds`);
    }
    const folder = makeTextFolder(t);
    folder.write('rules.yaml', JSON.stringify({ groups }));
    folder.write(
      'tests.yaml',
      JSON.stringify({
        rule_files: ['rules.yaml'],
        evaluation_interval: '1m',
        tests: cases.tests.map((test) => completeCase(test, rules, { namespace, service })),
      }),
    );
    const { code, output } = await promtool(['test', 'rules', `${folder.path}/tests.yaml`]);
    t.equal(code, 0, output);
  });
}

/**
 * Puts the labels of the scrape for `$OWN`, and fills in what expected alerts have from their rule.
 */
function completeCase(
  test: AlertCase,
  rules: readonly AlertRule[],
  own: { readonly namespace: string; readonly service: string },
): AlertCase {
  const labels = `namespace="${own.namespace}",service="${own.service}"`;
  return {
    ...test,
    input_series: test.input_series.map(({ series, values }) => ({
      series: series.replace('$OWN', labels),
      values,
    })),
    alert_rule_test: test.alert_rule_test.map((expected) => {
      const rule = rules.find(({ alert }) => alert === expected.alertname);
      const severity = rule?.labels.severity ?? '';
      return {
        ...expected,
        exp_alerts: (expected.exp_alerts ?? []).map(({ exp_labels, exp_annotations }) => ({
          exp_labels: { ...own, severity, ...exp_labels },
          exp_annotations: { ...rule?.annotations, ...exp_annotations },
        })),
      };
    }),
  };
}

async function renderGroups(chart: string): Promise<readonly RuleGroup[]> {
  const values = `--values=charts/${chart}/ci/default-values.yaml`;
  const objects = parseManifests(await renderChart(chart, [values]));
  const found = objects.find(({ kind }) => kind === 'PrometheusRule');
  if (found === undefined) throw new Error(`${chart} renders no PrometheusRule`);
  // promtool checks all of it.
  const { groups } = found.spec as { readonly groups: readonly RuleGroup[] };
  return groups;
}

async function promtool(args: readonly string[]): Promise<{ code: number; output: string }> {
  try {
    const { stdout, stderr } = await promisify(execFile)(findBinary('promtool'), [...args]);
    return { code: 0, output: `${stdout}${stderr}` };
  } catch (error) {
    if (!(error instanceof Error && 'stdout' in error && 'stderr' in error)) throw error;
    return { code: 1, output: `${error.stdout}${error.stderr}` };
  }
}
