import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { errors } from '../src/errors.ts';

t.test('every error of the catalogue is used', async (t) => {
  const source = join(import.meta.dirname, '../src');
  const files = (await readdir(source, { recursive: true })).filter((file) => file.endsWith('.ts'));
  const texts = await Promise.all(files.map((file) => readFile(join(source, file), 'utf8')));
  const code = texts.join('\n');
  const templates = Array.from(
    code.matchAll(/errors\[`([^`]+)`\]/g),
    ([, text = '']) => new RegExp(`^${text.replaceAll(/\$\{\w+\}/g, '\\w+')}$`),
  );
  for (const name of Object.keys(errors)) {
    const isNamed = new RegExp(`errors\\.${name}\\b|'${name}'`).test(code);
    t.ok(isNamed || templates.some((template) => template.test(name)), name);
  }
});
