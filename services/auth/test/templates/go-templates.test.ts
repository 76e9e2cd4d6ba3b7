import { readFileSync } from 'node:fs';
import type { JsonObject } from '@tollgate/kit/json';
import t from 'tap';
import { TemplateError } from '../../src/templates/syntax.ts';
import { parseTemplate, type TemplateForm } from '../../src/templates/template.ts';

// testdata/go-templates.json has templates and their output in Go. Run new cases through
// html/template.

interface GoTemplates {
  readonly data: JsonObject;
  readonly cases: readonly {
    readonly template: string;
    readonly form?: TemplateForm;
    readonly output?: string;
    readonly refusedAt?: 'parse' | 'render';
  }[];
}

const file = new URL('testdata/go-templates.json', import.meta.url);
// Parsed boundary: the file has this shape.
const { data, cases } = JSON.parse(readFileSync(file, 'utf8')) as GoTemplates;

function render(source: string, form: TemplateForm): string {
  const attempt = <T>(stage: string, run: () => T): T | string => {
    try {
      return run();
    } catch (error) {
      if (error instanceof TemplateError) return `rejected at ${stage}`;
      throw error;
    }
  };
  const template = attempt('parse', () => parseTemplate(source, form));
  return typeof template === 'string' ? template : attempt('render', () => template.render(data));
}

t.test('templates render and fail as in Go', (t) => {
  t.ok(cases.length > 1_000);
  for (const { template, form = 'html', output, refusedAt } of cases)
    t.equal(render(template, form), output ?? `rejected at ${refusedAt}`, `${form}: ${template}`);
  t.end();
});
