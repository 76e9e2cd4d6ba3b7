// node packages/rules/bench/main.ts            all shapes and sizes, each in its own process; JSON
// lines node packages/rules/bench/main.ts flat 1000  one of them, in this process
import { execFileSync } from 'node:child_process';
import { measureShape } from './measure-shape.ts';
import { type RuleShapeName, ruleShapes } from './rule-shapes.ts';

const sizes = [10, 100_000];
const childTimeoutMs = 120_000;

const isShape = (name: string): name is RuleShapeName => Object.hasOwn(ruleShapes, name);

const [shape, count] = process.argv.slice(2);
if (shape === undefined) {
  for (const name of Object.keys(ruleShapes)) {
    for (const size of sizes) {
      const args = [import.meta.filename, name, String(size)];
      process.stdout.write(execFileSync(process.execPath, args, { timeout: childTimeoutMs }));
    }
  }
} else if (isShape(shape) && /^[1-9]\d{0,5}$/.test(count ?? '')) {
  process.stdout.write(`${JSON.stringify(measureShape(shape, Number(count)))}\n`);
} else {
  process.stderr.write(`usage: main.ts [${Object.keys(ruleShapes).join('|')} <number of rules>]\n`);
  process.exitCode = 2;
}
