/** Says what is wrong with a template, and in which line. */
export class TemplateError extends Error {
  override readonly name = 'TemplateError';

  constructor(problem: string, line?: number) {
    super(line === undefined ? problem : `line ${line}: ${problem}`);
  }
}
