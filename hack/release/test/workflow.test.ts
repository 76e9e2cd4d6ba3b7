import { readFile } from 'node:fs/promises';
import { load } from 'js-yaml';
import t from 'tap';

/** A workflow of GitHub, as far as these tests read it. */
interface Workflow {
  readonly on: { readonly push: { readonly tags: readonly string[] } };
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: { readonly test: Job; readonly release: Job & { readonly needs: string } };
}

interface Job {
  readonly steps: readonly { readonly if?: string; readonly run?: string; readonly uses?: string }[];
}

// Our own file; what is missing in it fails below.
const workflow = load(await readFile('.github/workflows/release.yaml', 'utf8')) as Workflow;
const { steps } = workflow.jobs.release;

t.test('the workflow tests first, and publishes for a tag of a version alone', async (t) => {
  t.strictSame(workflow.on.push.tags, ['v*']);
  t.ok(workflow.jobs.test.steps.some(({ run }) => run === 'bash .ci/run'));
  t.equal(workflow.jobs.release.needs, 'test');
  const publish = steps.findIndex(({ run }) => run?.includes('--publish'));
  t.equal(steps[publish]?.if, "github.event_name == 'push'");
  t.equal(steps.filter(({ run }) => run?.includes('--publish')).length, 1);
});

t.test('nothing but the job that publishes may write', async (t) => {
  t.strictSame(workflow.permissions, { contents: 'read' });
});

t.test('what it runs is there', async (t) => {
  const makefile = await readFile('Makefile', 'utf8');
  const targets = steps.flatMap(({ run = '' }) => [...run.matchAll(/^make (\w+)/gm)].map(([, name]) => name));
  t.strictSame(new Set(targets), new Set(['release']));
  t.match(makefile, /^release: /m);
  t.ok(await readFile('.ci/run', 'utf8'));
});
