"""One run of Assay as a ReFrame test: each key figure is a performance variable.

    reframe -c assay_check.py -r -S assay=/opt/assay -S spec=/etc/assay/node.toml

A figure that Assay rejected (other work ran, a quota stopped it) is not exported: a reference would fail a host for
what others did. With a spec the test fails where `assay run --accept` rejects, and passes where it cannot tell.
To change: the variables below, and references in a class of your own, by the names of figures (dram-latency), as
specs have them. It costs the node its run: 90 s with --quick. With --distribute ReFrame makes a job for each node.
"""

import json

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_before, sanity_function, variable


@rfm.simple_test
class AssayCheck(rfm.RunOnlyRegressionTest):
    descr = 'Assay measures the node and judges each figure'
    valid_systems = ['*']
    valid_prog_environs = ['*']
    time_limit = '20m'
    num_tasks = 1
    exclusive_access = True

    # The program, what it measures, and the spec that the node is held against.
    assay = variable(str, value='assay')
    words = variable(str, value='--quick')
    spec = variable(str, value='')

    @run_before('run')
    def command(self):
        self.executable = self.assay
        self.executable_opts = ['run', self.words, '--out', 'runs']
        if self.spec:
            self.executable_opts += ['--accept', self.spec]
        self.env_vars['NO_COLOR'] = '1'
        self.postrun_cmds = ['echo "assay ended with $?"', 'cp runs/report.json report.json']

    @sanity_function
    def accepted(self):
        ends = {'0': 'accepted', '1': 'rejected', '3': 'nothing valid was measured', '4': 'undecided'}
        code = sn.extractsingle(r'^assay ended with (\d+)', self.stdout, 1)
        told = ends.get(str(code), f'assay ended with {code}')
        return sn.assert_true(told in ('accepted', 'undecided'), msg=told)

    @run_before('performance')
    def figures(self):
        with open(f'{self.stagedir}/report.json') as report:
            figures = json.load(report)['key_figures']
        for one in figures:
            # Nor one without a value: it was not measured.
            if one['verdict'] not in ('rejected', 'skipped') and one['value'] is not None:
                function = sn.make_performance_function(sn.defer(one['value']), one['unit'])
                self.perf_variables[one['name']] = function
