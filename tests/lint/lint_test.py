"""Every check finds what it is there for, and leaves alone what is good."""

import tempfile
import unittest
from pathlib import Path

import check_docs
import check_habits
import check_layers
import check_protos
import check_sizes


def findings(check, **files):
    """What a check says about a tree of these files; `__` in a name stands for a slash, a trailing `_h` for `.h`."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            path = Path(folder) / name.replace("__", "/")
            path = path.with_name(path.name[::-1].replace("_", ".", 1)[::-1])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return list(check(Path(folder)))


class LayersTest(unittest.TestCase):
    def test_a_room_sees_what_stands_below_it_and_nothing_above(self):
        good = '#include "core/tensor/tensor.h"\n'
        bad = '#include "core/batching/task.h"\n'
        self.assertEqual(findings(check_layers.check, core__attention__a_cc=good), [])
        self.assertEqual(len(findings(check_layers.check, core__attention__a_cc=bad)), 1)

    def test_foreign_libraries_stay_in_their_files(self):
        dnnl, grpc = "#include <dnnl.hpp>\n", "#include <grpcpp/grpcpp.h>\n"
        self.assertEqual(findings(check_layers.check, core__attention__onednn_matmul_cc=dnnl), [])
        self.assertEqual(len(findings(check_layers.check, core__attention__tiled_cc=dnnl)), 1)
        self.assertEqual(len(findings(check_layers.check, core__base__a_cc=grpc)), 1)

    def test_one_file_of_core_knows_protobuf(self):
        spec, other = '#include "triad/v1/layer_spec.pb.h"\n', '#include "triad/v1/attention.pb.h"\n'
        self.assertEqual(findings(check_layers.check, core__layer__layer_spec_text_cc=spec), [])
        self.assertEqual(len(findings(check_layers.check, core__layer__layer_spec_text_cc=other)), 1)
        self.assertEqual(len(findings(check_layers.check, core__layer__layer_folder_cc=spec)), 1)

    def test_client_headers_show_no_grpc(self):
        header = '#pragma once\n#include "triad/v1/attention.pb.h"\n'
        self.assertEqual(len(findings(check_layers.check, client__include__triad__a_h=header)), 1)

    def test_two_types_of_one_name_are_found(self):
        header = "#pragma once\nstruct Item {\n};\n"
        self.assertEqual(len(findings(check_layers.check, core__base__a_h=header, core__tensor__b_h=header)), 1)

    def test_a_header_needs_its_guard(self):
        self.assertEqual(len(findings(check_layers.check, core__base__a_h="int a;\n")), 1)


class SizesTest(unittest.TestCase):
    def test_long_files_and_functions_are_found(self):
        long_function = "int F(int a,\n      int b) {\n" + "  ++a;\n" * 60 + "}\n"
        self.assertEqual(len(findings(check_sizes.check, a_cc=long_function)), 1)
        self.assertEqual(len(findings(check_sizes.check, a_cc="\n" * 401)), 1)
        self.assertEqual(findings(check_sizes.check, a_cc="int F() {\n" + "  ++a;\n" * 58 + "}\n"), [])

    def test_a_constructor_reaches_from_its_name_to_its_brace(self):
        constructor = "T::T(int a)\n    : a_(a),\n      b_(a) {\n" + "%s}\n"
        self.assertEqual(findings(check_sizes.check, a_cc=constructor % ("  ++a_;\n" * 56)), [])
        self.assertEqual(len(findings(check_sizes.check, a_cc=constructor % ("  ++a_;\n" * 57))), 1)

    def test_parameters_are_counted_past_templates_and_nested_parentheses(self):
        six = "void F(std::map<int, int> a, std::function<void(int, int)> b, int c, int d, int e, int f) {\n}\n"
        seven = six.replace("int f", "int f, int g")
        self.assertEqual(findings(check_sizes.check, a_cc=six), [])
        self.assertEqual(len(findings(check_sizes.check, a_cc=seven)), 1)


class HabitsTest(unittest.TestCase):
    def test_files_are_text_but_for_what_fuzzers_are_fed(self):
        self.assertEqual(findings(check_habits.check, a_md="text"), [])
        self.assertEqual(len(findings(check_habits.check, perf_data="PERF\0")), 1)
        self.assertEqual(findings(check_habits.check, tests__fuzz__corpus__a_pb="\0"), [])

    def test_sleeping_is_found(self):
        self.assertEqual(len(findings(check_habits.check, server__a_cc="  std::this_thread::sleep_for(one);\n")), 1)

    def test_a_todo_needs_a_name(self):
        self.assertEqual(len(findings(check_habits.check, core__a_cc="// TODO: later\n")), 1)
        self.assertEqual(findings(check_habits.check, core__a_cc="// TODO(name): drop with Debian 12\n"), [])


class ProtosTest(unittest.TestCase):
    def test_a_bare_field_value_or_rpc_is_found(self):
        bare = "message M {\n  int32 a = 1;\n}\nenum E {\n  // Zero.\n  E_ZERO = 0;\n  E_ONE = 1;\n}\n"
        self.assertEqual(len(findings(check_protos.check, proto__a_proto=bare)), 2)
        self.assertEqual(len(findings(check_protos.check, proto__a_proto="\npackage triad.v1;\n")), 1)
        self.assertEqual(len(findings(check_protos.check, proto__a_proto="service S {\n  rpc Do(A) returns (B);\n}\n")), 1)


class DocsTest(unittest.TestCase):
    TABLE = "# Follow one request\n\n| step | file | function |\n|---|---|---|\n| 1 | `core/a.cc` | `Run` |\n"

    def test_links_and_headings_must_exist(self):
        page = "# One heading\n[a](#one-heading) [b](other.md) [c](#none)\n" + self.TABLE
        self.assertEqual(len(findings(check_docs.check, README_md=page, core__a_cc="Run()")), 2)

    def test_the_request_table_names_functions_that_exist(self):
        self.assertEqual(findings(check_docs.check, README_md=self.TABLE, core__a_cc="Run()"), [])
        self.assertEqual(len(findings(check_docs.check, README_md=self.TABLE, core__a_cc="Walk()")), 1)

    def test_every_flag_is_listed_and_no_other(self):
        flag = 'ABSL_FLAG(int, threads, 0, "");\n'
        deploy = "## Flags\n\n| flag | default |\n|---|---|\n| `--thread` | 0 |\n"
        found = findings(check_docs.check, README_md=self.TABLE, core__a_cc="Run()", server__o_cc=flag, deploy__README_md=deploy)
        self.assertEqual(len(found), 2)


if __name__ == "__main__":
    unittest.main()
